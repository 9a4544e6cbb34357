"""What is sent: copies between host and device, their staging, and communication between ranks."""

"""What is sent between host and device, and between ranks."""

"""What the host did while the device was idle, by name."""

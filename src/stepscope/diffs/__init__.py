"""What changed between two runs, and whether it is significant."""

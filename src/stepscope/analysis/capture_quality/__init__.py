"""What a capture lacks: its defects, its coverage, what it holds."""

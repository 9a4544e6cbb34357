"""The readers."""

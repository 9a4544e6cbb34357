"""Loops in Python whose iterations could run at once."""

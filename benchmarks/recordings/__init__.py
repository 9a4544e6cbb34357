"""Recorded jobs that only scorers need, packed into one small file a set: how they are packed, and how they are opened."""

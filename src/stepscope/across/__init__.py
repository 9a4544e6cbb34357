"""Questions that one rank alone cannot answer: its ranks beside each other."""

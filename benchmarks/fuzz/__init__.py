"""Damaged copies of real profiles, for as long as asked: `python -m benchmarks.fuzz --seconds 600 [FILES…]`."""

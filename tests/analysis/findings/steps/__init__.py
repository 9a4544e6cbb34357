"""Slow steps, and what makes them slow."""

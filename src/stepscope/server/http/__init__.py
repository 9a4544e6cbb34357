"""Requests, static files, and who is let in."""

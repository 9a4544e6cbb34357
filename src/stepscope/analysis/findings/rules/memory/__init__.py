"""Findings about memory."""

"""Findings about the host: it makes input, compiles, waits, runs Python, or launches too slowly."""

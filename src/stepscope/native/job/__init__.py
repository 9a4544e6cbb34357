"""Loops over the work of many ranks."""

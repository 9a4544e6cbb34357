"""Findings about some of the steps."""

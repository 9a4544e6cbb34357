"""Rows of the report's tables."""

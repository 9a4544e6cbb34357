"""Levels of detail for the trace viewer."""

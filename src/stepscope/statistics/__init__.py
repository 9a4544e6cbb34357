"""Summaries and tests that analysis, diffs and gate share."""

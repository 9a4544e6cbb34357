"""Diagnosed bottlenecks, one rule each, with evidence and the fix."""

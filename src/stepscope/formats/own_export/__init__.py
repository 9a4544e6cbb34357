"""Traces that stepscope writes, read back without loss."""

"""Pickles as columns, without a Python object per value."""

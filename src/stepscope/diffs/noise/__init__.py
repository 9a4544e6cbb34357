"""The noise of a comparison: bootstrap, scatter, machine speed."""

"""Measures what the device of this machine reaches, with whichever framework is installed."""

"""The scanner of trace JSON."""

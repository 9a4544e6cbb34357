"""Sections over ranks: comparison, stragglers, unequal work."""

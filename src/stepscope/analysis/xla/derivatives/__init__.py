"""Derivatives that compiled programs compute for more directions than their results need."""

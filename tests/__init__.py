"""Tests, laid out like the sources that they test."""

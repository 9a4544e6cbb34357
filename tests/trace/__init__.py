"""Tests of the columnar model."""

"""Tests of calls that a step repeats."""

"""Tests of the benchmark itself: what it measures on must be right, too."""

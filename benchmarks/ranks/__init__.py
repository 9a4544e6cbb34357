"""Profiles of many ranks whose truth is known: made from real traces of one rank, and how well they are read."""

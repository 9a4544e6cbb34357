"""Flame graphs of one rank: what is summed up, in the order of time, and the events of a box."""

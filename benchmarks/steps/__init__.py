"""Recordings whose steps are known, because the loop that made them counted and timed them."""

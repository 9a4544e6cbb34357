"""The hot loops, compiled and interpreted."""

"""From a path to a profile: what is in a folder, its ranks, its tables, and the cache of what was read before."""

"""Is the diff right: planted changes must be its first line, and a job recorded twice must not differ."""

"""One small program per tool: load a profile, say how long it took and how much memory it needed."""

"""What belongs to the whole process: the active profiler, clocks, exits, step times."""

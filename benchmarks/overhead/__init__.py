"""What recording costs the job: a step in a window against the framework's own profiler, and everything outside of one."""

"""`stepscope run`: a profiler inside a script that was not changed."""

"""SQL over a profile's tables and nothing else: DuckDB in a process that can open no file and no connection."""

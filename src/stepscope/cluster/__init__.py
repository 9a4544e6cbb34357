"""Where the work on each rank is done: in this process, in local processes, or on a Dask cluster."""

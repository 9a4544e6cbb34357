"""Hot loops over intervals: sets, nesting, lanes, sweeps."""

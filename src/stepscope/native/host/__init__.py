"""Hot loops over host intervals: lineage, replay, self work."""

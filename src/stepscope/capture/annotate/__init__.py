"""Names for regions, steps and ops, shown in the frameworks' own recordings too."""

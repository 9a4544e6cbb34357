"""The columnar model that all formats are read into."""

"""Generated references of the documentation: the command line and the Python API."""

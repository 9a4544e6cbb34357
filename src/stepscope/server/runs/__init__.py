"""The runs that a server shows: listed, watched, opened."""

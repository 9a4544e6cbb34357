"""The two sides of a diff: matched rows and samples."""

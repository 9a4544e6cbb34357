"""What is in a folder: runs, ranks, sidecars, leftovers."""

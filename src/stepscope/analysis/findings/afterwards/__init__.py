"""What is said of findings once all of them are known."""

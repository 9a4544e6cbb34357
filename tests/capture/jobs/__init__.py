"""Training jobs that the tests run."""

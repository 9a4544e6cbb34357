"""Real jobs of four processes over gloo, each slow in a known way."""

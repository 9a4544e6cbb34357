"""TensorFlow 1: RunMetadata in event files."""

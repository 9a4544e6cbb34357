"""A training loop without a framework: its batches and its input workers."""

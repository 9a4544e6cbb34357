"""What a recording leaves in its run folder."""

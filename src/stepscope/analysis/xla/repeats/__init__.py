"""Work of compiled programs that runs of theirs do again though its result is known."""

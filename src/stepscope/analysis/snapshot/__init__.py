"""What a memory snapshot shows: who holds the memory, since when, and what would make room."""

"""Tables kept as Arrow IPC files, memory-mapped at the second open."""

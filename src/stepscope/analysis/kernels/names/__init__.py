"""What a kernel's name says: library, class, precision."""

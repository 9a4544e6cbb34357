"""XLA programs: instructions, their cost, their memory."""

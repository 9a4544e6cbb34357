"""Whole commands, from the shell's point of view: start of the interpreter, imports, work and output."""

"""One catalogue of problems: what each code means, why it happens, and how to fix it."""

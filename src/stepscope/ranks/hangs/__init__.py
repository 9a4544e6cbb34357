"""Why the ranks of a job hang: flight-recorder dumps compared."""

"""The same questions over all ranks: clocks, matched collectives, stragglers."""

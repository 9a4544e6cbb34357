"""One clock for all ranks, fitted from collectives."""

"""Findings about the device's own work: number format, layout, attention in pieces, too little of it."""

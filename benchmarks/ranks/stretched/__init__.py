"""Jobs whose ranks repeat recorded steps, lengthened part by part and interrupted by collectives."""

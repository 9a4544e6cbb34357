"""The numbers that decide: measured physics (`calibration`), what is worth showing (`policy`), statistics (`levels`)."""

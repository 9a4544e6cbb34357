"""Where steps begin and end: markers, inference, boundaries."""

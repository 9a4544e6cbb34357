"""The steps of a recording, as findings see them."""

"""From a figure of the page to the events behind it."""

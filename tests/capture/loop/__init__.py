"""What the capture hears of the loop and its loaders."""

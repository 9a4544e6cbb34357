"""How batches come to the step: loaders that start again, and cores that are all busy with making them."""

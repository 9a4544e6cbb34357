"""What users install: the wheels and sdists of stepscope-capture and stepscope. `make release-check` tries them in clean environments."""

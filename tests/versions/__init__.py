"""stepscope with the lowest and the newest versions of what it needs, on every Python that can be had: `make versions`."""

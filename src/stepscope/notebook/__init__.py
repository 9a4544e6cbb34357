"""stepscope in a notebook: `%load_ext stepscope`, then `%stepscope LOGDIR` and `%%stepscope`."""

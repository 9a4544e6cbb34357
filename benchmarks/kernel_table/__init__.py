"""Which kernels really use the tensor cores: `ncu`'s counters beside the names that profilers record."""

"""The report: plain data with a versioned JSON schema, the sections that fill it, and the renderers that draw it."""

"""From bytes of JSON to columns, in parallel or streamed."""

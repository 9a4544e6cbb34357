"""Chrome trace events of any writer."""

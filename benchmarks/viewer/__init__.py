"""The trace viewer in a real browser: ten million events, and the first view beside XProf's."""

"""Why two runs differ, one explanation each."""

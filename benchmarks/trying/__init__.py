"""Trials of `stepscope try` itself: unchanged jobs against themselves, and jobs with a known change for the table of trust."""

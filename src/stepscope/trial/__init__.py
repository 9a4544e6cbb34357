"""`stepscope try`: measure what a change brings, by running the job with and without it."""

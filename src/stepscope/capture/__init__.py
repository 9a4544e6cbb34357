"""Recording inside someone else's training job: it must not fail, must not slow the job, and needs nothing installed."""

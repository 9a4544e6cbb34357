"""Inside a job that `stepscope try` runs: make a change from outside, time some steps, and end the job."""

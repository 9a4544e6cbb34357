"""The machine that a job runs on."""

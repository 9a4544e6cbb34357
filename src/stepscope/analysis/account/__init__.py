"""Where the step's time went: device busy, and idle by cause, summing to the nanosecond."""

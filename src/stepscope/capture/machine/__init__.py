"""Memory and telemetry of the machine."""

"""What the trace viewer asks for: functions of a trace, and their routes."""

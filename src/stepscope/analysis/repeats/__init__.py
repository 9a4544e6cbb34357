"""Calls of modules and functions that compute again what an earlier call of the step has computed."""

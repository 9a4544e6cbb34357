"""Answers for coding assistants: a report within a budget of tokens, handles that lead deeper, and an MCP server."""

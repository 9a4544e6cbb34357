"""The report as text, Markdown, HTML, CSV and JSON."""

"""A page of one sentence, for when the real one cannot be shown. Needs nothing but Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

_SCRIPT = b"export async function render() { document.location.href = 'index.html'; }\n"
_STYLE = "body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 3em auto; padding: 0 1em } pre { overflow: auto }"


def app(reason: str, details: str) -> Callable[..., Iterable[bytes]]:
    """A WSGI app that shows the reason at every address."""
    page = (
        f'<!doctype html><meta charset="utf-8"><title>stepscope</title><style>{_STYLE}</style>'
        f"<h1>stepscope cannot show its pages</h1><p>{escape(reason)}</p>"
        "<p>In the environment of TensorBoard, try: <code>pip install --upgrade stepscope</code>, then start TensorBoard again. "
        "TensorBoard itself is not affected.</p>"
        f"<details><summary>Details</summary><pre>{escape(details)}</pre></details>"
    ).encode("utf-8", "replace")

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_script = str(environ.get("PATH_INFO", "")).endswith("/index.js")
        body, kind = (_SCRIPT, "text/javascript") if is_script else (page, "text/html")
        headers = [
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
        ]
        start_response("200 OK", headers)
        return [body]

    return answer

"""The plugin: the server's app below TensorBoard's address, over TensorBoard's log folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorboard.plugins import base_plugin

from stepscope.server.api.capture import server_addresses
from stepscope.server.app import Settings, make_app
from stepscope.server.http.guard import LOOPBACK, Guard, host_names
from stepscope.server.runs.watch import Place

PATIENCE_S = 0.3
MOUNTED_AT = "/data/plugin/stepscope"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9.+-]*://")


class StepscopePlugin(base_plugin.TBPlugin):
    """TensorBoard's own rules say who is let in; recording is off unless --stepscope_capture turns it on.

    Pages are answered under any name, as TensorBoard answers its own. Under any name would also be one that another site points
    at this machine, so SQL and capture are answered only under names that the user knows of.
    """

    plugin_name = "stepscope"

    def __init__(self, context: base_plugin.TBContext) -> None:
        flags = context.flags
        settings = Settings(
            capture=bool(getattr(flags, "stepscope_capture", False)),
            capture_servers=server_addresses(getattr(flags, "stepscope_capture_server", None) or ()),
            in_tensorboard=True,
            guard=guard(
                str(getattr(flags, "host", "") or ""), getattr(flags, "stepscope_allow_host", None) or ()
            ),
        )
        spec = str(getattr(flags, "logdir_spec", "") or "")
        self._app = make_app(places(str(context.logdir or ""), spec), settings)
        self._app.runs.found()  # the first look begins now: TensorBoard asks for the tabs as soon as a page is opened

    def get_plugin_apps(self) -> dict[str, Any]:
        """One app for all paths."""
        return {"/*": self._mounted}

    def is_active(self) -> bool:
        """Whether any run was found; only the first look is waited for, and not for long."""
        return self._app.runs.has_any(PATIENCE_S)

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab."""
        return base_plugin.FrontendMetadata(
            es_module_path="/index.js", tab_name="stepscope", disable_reload=True
        )

    def _mounted(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", ""))
        inner = dict(environ)
        if path.startswith(MOUNTED_AT):
            inner["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}{MOUNTED_AT}"
            inner["PATH_INFO"] = path[len(MOUNTED_AT) :]
        return self._app(inner, start_response)


def guard(bound: str, allowed: Sequence[str]) -> Guard:
    """`bound` is TensorBoard's --host, `allowed` are the names of --stepscope_allow_host."""
    own = host_names([f"[{bound}]" if ":" in bound else bound]) if bound else ()
    return Guard(
        hosts=None,
        orders_as=(*LOOPBACK, *own),
        named=host_names(allowed),
        flag="--stepscope_allow_host",
        may_be_framed=True,
    )


def places(logdir: str, spec: str) -> list[Place]:
    """What --logdir or --logdir_spec names. A group `name:path` is distinguished from a path with a colon as TensorBoard does it."""
    if logdir:
        return [Place(logdir)]
    return [_place(part) for part in spec.split(",") if part.strip()]


def _place(part: str) -> Place:
    is_path = _URI.match(part) or part.startswith("/") or os.path.splitdrive(part)[0]
    if ":" in part and not is_path:
        name, _, path = part.partition(":")
        return Place(path, name)
    return Place(part)

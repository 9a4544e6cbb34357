"""The routes of the trace viewer, below api/runs/{id}/timeline/."""

from __future__ import annotations

from stepscope.server.routes import RunRoute

ROUTES: tuple[RunRoute, ...] = ()

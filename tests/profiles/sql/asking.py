"""A worker and a small profile to ask it about."""

from __future__ import annotations

import polars as pl

from stepscope.profiles.profile import Profile
from stepscope.profiles.sql.client import Answer, Gone, Worker
from stepscope.profiles.sql.wire import Order
from tests.builders.traces import HandmadeProfile


class Asking:
    """Asks one worker; one that ended is replaced, as the server does."""

    def __init__(self, profile: HandmadeProfile | Profile | None = None) -> None:
        self.profile = profile or HandmadeProfile()
        self.worker = Worker()

    def answer(self, sql: str, seconds: float | None = None, memory_bytes: int | None = None) -> Answer:
        """What the worker says."""
        order = Order(sql, seconds, memory_bytes, threads=2)
        try:
            if not self.worker.is_alive:
                raise Gone
            self.worker.begin(order)
        except Gone:
            self.worker = Worker()
            self.worker.begin(order)
        return self.worker.finish(self.profile.table)

    def frame(self, sql: str) -> pl.DataFrame:
        """The rows."""
        return self.answer(sql).frame

    def close(self) -> None:
        """End the worker."""
        self.worker.close()

"""Work that ends the process it runs in: once for some files, always for others."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from stepscope.cluster import work
from stepscope.cluster.work import Answer, Task

really = work.analyse


def analyse(task: Task) -> Answer:
    """As the real one, but a file beside which lies a `.kill` kills the first process that reads it, a `.kills` every one."""
    once, always = Path(task.path + ".kill"), Path(task.path + ".kills")
    if always.exists() or once.exists():
        once.unlink(missing_ok=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return really(task)

"""The peers, each in a virtual environment of its own; STEPSCOPE_PEERS names a folder that has them already."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.measure import Tool

# Newer setuptools no longer bring pkg_resources, which torch-tb-profiler imports through TensorBoard.
PACKAGES = {
    "json": [],
    "tb": ["torch-tb-profiler==0.4.3", "pandas", "setuptools<81"],
    "xprof": ["xprof==2.24.1"],
    "hta": ["traceinsight==0.6.1"],
}
TOOLS = {
    "json": ("json.load", "json_load"),
    "tb": ("torch-tb-profiler", "torch_tb_profiler"),
    "xprof": ("XProf overview", "xprof"),
    "hta": ("Holistic Trace Analysis", "holistic_trace_analysis"),
}


def peer(key: str, work: Path) -> Tool:
    """The peer, ready to run: found where STEPSCOPE_PEERS says, or installed under the work folder."""
    given = os.environ.get("STEPSCOPE_PEERS")
    name, driver = TOOLS[key]
    if given and (python := Path(given, key, "bin", "python")).exists():
        return Tool(name, driver, str(python))
    return Tool(name, driver, str(_installed(work / "peers" / key, PACKAGES[key])))


def _installed(folder: Path, packages: list[str]) -> Path:
    python = folder / "bin" / "python"
    done = folder / ".installed"
    if done.exists() and done.read_text() == "\n".join(packages):
        return python
    print(f"installing {' '.join(packages) or 'nothing but Python'} into {folder}", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=bool(packages))
    if packages:
        subprocess.run(
            [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *packages], check=True
        )
    done.write_text("\n".join(packages))
    return python

"""The files to measure on: real profiles, repeated to the sizes asked for and kept for the next run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ROOT

SHIPPED = (ROOT / "src/stepscope/samples", ROOT / "tests/fixtures/kineto")
FRAMEWORKS = ROOT / ".venv-frameworks/bin/python"
# Preferred first. The first Kineto trace is used, and every XPlane: of TensorFlow on a host, and of JAX on a GPU.
KINETO = ("h200/resnet_input_bound.pt.trace.json.gz", "h200/gpt_bf16_eager.pt.trace.json.gz")
HOST_XPLANE = "tensorflow/custom_loop/plugins/profile/*/*.xplane.pb"
GPU_XPLANE = "h200/jax_gpu/plugins/profile/*/*.xplane.pb"
SAMPLE_LOOP, SAMPLE_GPU = "plugins/profile/*/*.xplane.pb", "tests/fixtures/jax/plugins/profile/*/*.xplane.pb"


@dataclass(frozen=True)
class Input:
    """A file made for the benchmark, and how many events it holds."""

    path: Path
    events: int
    source: str

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self.path.stat().st_size


def kineto_source() -> Path | None:
    """A real Kineto trace: of the corpus where there is one, else the largest that ships with stepscope."""
    found = _corpus(KINETO) or _shipped("*.pt.trace.json*")
    return found[0] if found else None


def xplane_sources(work: Path) -> list[Path]:
    """Real XPlane files: loops on a host first, then those of a GPU."""
    return [*host_loops(work), *gpu_xplanes()]


def host_loops(work: Path) -> list[Path]:
    """XPlane files of TensorFlow on a host: of the corpus where there is one, else recorded here if TensorFlow is installed."""
    return _corpus((HOST_XPLANE,)) or _recorded_loop(work / "tensorflow_loop")


def gpu_xplanes() -> list[Path]:
    """XPlane files of JAX on a GPU: of the corpus where there is one, else a sample."""
    return _corpus((GPU_XPLANE,)) or sorted(ROOT.glob(SAMPLE_GPU))


def _recorded_loop(folder: Path) -> list[Path]:
    """A training loop that TensorFlow records once, where it is installed."""
    if FRAMEWORKS.exists() and not list(folder.glob(SAMPLE_LOOP)):
        print("recording a training loop of TensorFlow", file=sys.stderr)
        program = ROOT / "benchmarks/record/tf_loop.py"
        ended = subprocess.run([FRAMEWORKS, program, folder], capture_output=True, text=True)
        if ended.returncode:
            last = ended.stderr.strip().splitlines()[-1:]
            print("the training loop could not be recorded:", *last, file=sys.stderr)
    return sorted(folder.glob(SAMPLE_LOOP))


def repeated(source: Path, kind: str, at_least: int, work: Path) -> Input:
    """The profile as often as needed to hold so many events. Made in another process, to keep this one small."""
    work.mkdir(parents=True, exist_ok=True)
    label = _label(source)
    suffix = "pt.trace.json" if kind == "repeat" else "xplane.pb"
    target = work / f"{label}_{at_least}.{suffix}"
    note = target.with_name(target.name + ".count")
    made_from = f"{source.stat().st_size} {source.stat().st_mtime_ns}"
    if not (note.exists() and note.read_text().startswith(made_from + "\n")):
        command = [sys.executable, "-m", f"benchmarks.{kind}", str(source), str(target), str(at_least)]
        print(f"making {target.name} from {source.name}", file=sys.stderr)
        count = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
        note.write_text(f"{made_from}\n{count}\n")
    return Input(target, int(note.read_text().split("\n")[1]), label)


def _label(source: Path) -> str:
    """A short name: of the file, or of the folder that holds plugins/profile."""
    parts = source.parts
    if "plugins" in parts:
        return parts[parts.index("plugins") - 1]
    return source.name.split(".")[0]


def _shipped(pattern: str) -> list[Path]:
    """Profiles of our own, the largest first."""
    return sorted(
        (path for folder in SHIPPED for path in folder.rglob(pattern)), key=lambda path: -path.stat().st_size
    )


def _corpus(patterns: tuple[str, ...]) -> list[Path]:
    corpus = os.environ.get("STEPSCOPE_CORPUS")
    if not corpus:
        return []
    return [path for pattern in patterns for path in sorted(Path(corpus).glob(pattern))]

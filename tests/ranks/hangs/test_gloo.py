"""Real jobs of four gloo processes that hang, each in its own way: rank, collective and line are named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from stepscope.doctor.diagnose import diagnose
from stepscope.reports.build import report
from tests.builders.dumps import hang, pending, put_dumps, usual

JOB = Path(__file__).with_name("gloo_job.py")
CASES = ("missing", "size", "order", "loop", "dead")
PATIENCE_SECONDS = 120
pytestmark = pytest.mark.skipif(
    find_spec("torch") is None or not hasattr(os, "fork"), reason="PyTorch is not installed, or nothing forks"
)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases at once: most of the time PyTorch is imported."""
    folder = tmp_path_factory.mktemp("gloo")
    added = {"TORCH_FR_BUFFER_SIZE": "2000", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(JOB), str(folder), "pickle", *CASES]
    subprocess.run(
        command, env={**os.environ, **added}, check=True, timeout=PATIENCE_SECONDS, capture_output=True
    )
    return folder


def line_of(text: str) -> int:
    lines = JOB.read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


REDUCE = f"all_reduce at gloo_job.py:{line_of('dist.all_reduce(')}"
GATHER = f"all_gather at gloo_job.py:{line_of('dist.all_gather(')}"


@pytest.mark.parametrize(
    ("case", "kind", "words"),
    [
        ("missing", "op", f"Rank 2 called {GATHER} where ranks 0–1, 3 called {REDUCE}"),
        ("order", "op", f"Rank 2 called {GATHER} where ranks 0–1, 3 called {REDUCE}"),
        ("size", "size", "Rank 2 called all_reduce with [512] at"),
        (
            "loop",
            "absent",
            f"Ranks 0–1, 3 wait in {REDUCE}; rank 2 has not called it and is in no collective",
        ),
        ("dead", "dead", f"Ranks 0–1, 3 wait in {REDUCE}; rank 2 has not come and left no dump"),
    ],
)
def test_the_rank_the_collective_and_the_line_are_named(
    dumps: Path, case: str, kind: str, words: str
) -> None:
    found = report(str(dumps / case))
    assert (found.hang.kind, found.hang.culprits) == (kind, [2])
    assert found.sentence.startswith(words)


def test_the_doctor_says_the_same(dumps: Path) -> None:
    found = diagnose(str(dumps / "loop"))
    assert [result.code for result in found.failures] == ["hang"]
    assert re.search(r"rank 2 has not called it", found.failures[0].evidence)


ANALYZER = """
import sys
from torch.distributed.flight_recorder.fr_trace import main
for folder in sys.argv[1:]:
    main(["-p", "nccl_trace_rank_", folder])
"""


def test_the_analyzer_of_pytorch_agrees(tmp_path: Path) -> None:
    """On dumps as NCCL writes them, which tests make themselves."""
    calls = (pending("nccl:broadcast", 5), pending("nccl:all_reduce", 5, input_sizes=((8,),)))
    cases = [hang(), *(hang(entries=[*usual(), call]) for call in calls)]
    folders = [str(put_dumps(tmp_path / str(place), case)) for place, case in enumerate(cases)]
    command = [sys.executable, "-c", ANALYZER, *folders]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    said = done.stdout + done.stderr
    assert re.search(r"missing ranks: \{2\}", said)
    assert "Culprit rank 2; Error type: COLLECTIVE_TYPE_MISMATCH" in said
    assert "Culprit rank 2; Error type: SIZE_OR_SYNTAX_MISMATCH" in said
    assert [report(folder).hang.culprits for folder in folders] == [[2], [2], [2]]

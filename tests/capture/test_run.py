"""`stepscope run`: jobs that know nothing of stepscope are recorded, and otherwise run as ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.command.outcome import outcome
from stepscope.capture.command.run import WrongUsage, command_of, keep_of, steps_of
from stepscope.capture.launch.environment import Plan, environment, plan_of, read_notes, write_note
from tests.capture.running import JOBS, PATIENCE_SECONDS, ROOT, needs, sidecars, traces
from tests.capture.running import environment as job_environment
from tests.patience import measured
from tests.sample import in_soak

LOOPS = JOBS / "loops.py"


def launch(folder: Path, *words: object, **added: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "stepscope", "run", *map(str, words)],
        env=job_environment(**added),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def launched(folder: Path, *words: object, **added: str) -> subprocess.CompletedProcess[str]:
    process = launch(folder, *words, **added)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def script(folder: Path, text: str) -> Path:
    path = folder / "job.py"
    path.write_text(text)
    return path


def lengths(note: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """The first step and the number of steps before, inside and after the window."""
    return {
        part: (note["steps"][part]["first"], len(note["steps"][part]["durations_ns"]))
        for part in note["steps"]
    }


# ---- whatever runs, runs as ever


def test_arguments_output_and_exit_code(tmp_path: Path) -> None:
    job = script(tmp_path, "import sys; print(sys.argv[1:]); print('x', file=sys.stderr); sys.exit(7)")
    ended = launched(
        tmp_path, "--steps", "1:2", "--", sys.executable, job, "--steps", "3", "-o", "a b", "--", "-m"
    )
    assert (ended.returncode, ended.stdout) == (7, "['--steps', '3', '-o', 'a b', '--', '-m']\n")
    assert "recorded as a whole into stepscope-out" in ended.stderr
    assert "Next: stepscope report stepscope-out" in ended.stderr


def test_modules_and_scripts_run_under_this_python(tmp_path: Path) -> None:
    script(tmp_path, "import sys; print(__name__, sys.argv[1:])")
    assert launched(tmp_path, "-m", "job", "-x").stdout == "__main__ ['-x']\n"
    assert launched(tmp_path, "--", "-m", "job", "-x").stdout == "__main__ ['-x']\n"
    assert launched(tmp_path, "job.py", "1").stdout == "__main__ ['1']\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_job(tmp_path: Path, number: signal.Signals) -> None:
    job = script(
        tmp_path,
        "import signal, sys, time\n"
        "def end(number, frame): print('got', number, flush=True); sys.exit(5)\n"
        f"signal.signal({int(number)}, end)\nprint('ready', flush=True)\ntime.sleep({PATIENCE_SECONDS})\n",
    )
    process = launch(tmp_path, "--", sys.executable, job)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert (out, process.returncode) == (f"got {int(number)}\n", 5)


def test_a_job_that_is_killed_ends_us_the_same_way(tmp_path: Path) -> None:
    ended = launched(tmp_path, "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert ended.returncode == -signal.SIGKILL


def test_no_such_command(tmp_path: Path) -> None:
    ended = launched(tmp_path, "--", "there-is-no-such-command")
    assert ended.returncode == 127
    assert "Command not found" in ended.stderr


def test_the_jobs_own_sitecustomize_runs_and_the_path_is_clean(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.own_ran = __file__")
    job = script(
        tmp_path,
        "import sys, sitecustomize; print(sys.own_ran, sitecustomize.__file__, [p for p in sys.path if 'hook' in p])",
    )
    paths = os.pathsep.join((str(own), str(Path(__file__).parents[2] / "src")))
    ended = launched(tmp_path, "--", sys.executable, job, PYTHONPATH=paths)
    assert ended.stdout.split() == [str(own / "sitecustomize.py")] * 2 + ["[]"]


def test_nothing_heavy_is_imported_into_processes_without_a_framework(tmp_path: Path) -> None:
    """Only the main process is recorded as a whole: those that it starts are left alone."""
    child = "import sys; print(*sorted(m for m in sys.modules if m.startswith('stepscope')))"
    job = script(tmp_path, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    ended = launched(tmp_path, "--", sys.executable, job)
    assert "stepscope.capture.launch.inside_job" in ended.stdout
    assert "stepscope.capture.profiler" not in ended.stdout


def test_a_python_without_stepscope_is_recorded_too(tmp_path: Path) -> None:
    """The hook brings its own; nothing else that is installed beside stepscope can be imported."""
    (tmp_path / "hidden").mkdir()
    job = script(
        tmp_path,
        "import sys, stepscope\nfor _ in range(6): stepscope.step()\nprint([p for p in sys.path if p.endswith('src')])",
    )
    plan = Plan(str(tmp_path / "out"), 2, 3, str(tmp_path / "hidden"))
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-s", str(job)],
        env=environment(plan, env),
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(traces(tmp_path / "out")) == 1, ended.stderr
    assert next(read_notes(tmp_path / "hidden"))["steps"] == 6


# ---- what is recorded


def test_steps_that_the_job_marks_itself(tmp_path: Path) -> None:
    ended = launched(tmp_path, "--steps", "4:6", "-o", "out", "--", sys.executable, LOOPS, "plain_call", 12)
    (note,) = sidecars(tmp_path / "out")
    assert lengths(note) == {"before": (0, 2), "warmup": (2, 2), "inside": (4, 3), "after": (7, 5)}
    assert "Recorded steps 4 to 6 into out." in ended.stderr
    assert "Next: stepscope report out" in ended.stderr


def test_windows_again_and_again(tmp_path: Path) -> None:
    """By default all are kept, with --keep the newest; the outcome says how many there were."""
    job = script(tmp_path, "import stepscope\nfor _ in range(26):\n    stepscope.step()\n")
    command = ("--steps", "2:4", "--", sys.executable, job)
    ended = launched(tmp_path, "--repeat", "3", "-o", "three", *command)
    assert ended.returncode == 0, ended.stderr
    assert [note["window"] for note in sidecars(tmp_path / "three")] == [0, 1, 2]
    assert [lengths(note)["inside"] for note in sidecars(tmp_path / "three")] == [(2, 3), (7, 3), (12, 3)]
    assert "every 5 steps" in ended.stderr
    ended = launched(tmp_path, "--repeat", "0", "--keep", "2", "-o", "newest", *command)
    assert ended.returncode == 0, ended.stderr
    assert [note["window"] for note in sidecars(tmp_path / "newest")] == [3, 4]
    assert "Older windows of this recording were removed" in ended.stderr


@pytest.mark.parametrize(("text", "kept"), [("newest", "newest"), ("all", None), ("7", 7)])
def test_how_many_are_kept(text: str, kept: int | str | None) -> None:
    assert keep_of(text) == kept


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "1.5", "1e9"])
def test_wrong_numbers_to_keep(text: str) -> None:
    with pytest.raises(WrongUsage, match="is not a number of windows"):
        keep_of(text)


def test_a_job_that_is_too_short(tmp_path: Path) -> None:
    ended = launched(tmp_path, "-o", "out", "--", sys.executable, LOOPS, "plain_call", 7)
    assert "The job made 7 steps, but steps 10 to 15 were requested" in ended.stderr
    assert f"For other steps: stepscope run --steps 2:6 -- {sys.executable}" in ended.stderr
    assert len(traces(tmp_path / "out")) == 1


def test_a_job_that_ends_inside_the_window(tmp_path: Path) -> None:
    ended = launched(tmp_path, "--steps", "4:60", "-o", "out", "--", sys.executable, LOOPS, "plain_call", 9)
    assert "Recorded steps 4 to 8 (the job ended before step 60)" in ended.stderr
    assert len(traces(tmp_path / "out")) == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    ended = launched(tmp_path, "--steps", "1:2", "-o", "out", "--", sys.executable, LOOPS, "plain_call", 5)
    assert (ended.returncode, ended.stdout) == (0, "5\n")
    assert "Nothing was recorded." in ended.stderr
    assert "Next: stepscope doctor" in ended.stderr


@needs("torch")
def test_torch(tmp_path: Path) -> None:
    words = ("--steps", "4:6", "-o", "out", "--", sys.executable, LOOPS)
    ended = launched(tmp_path, *words, "loader", 12)
    (note,) = sidecars(tmp_path / "out")
    assert lengths(note) == {"before": (0, 2), "warmup": (2, 2), "inside": (4, 3), "after": (7, 5)}
    assert note["problems"] == []
    assert ended.stdout == "12\n"
    import stepscope

    report = stepscope.report(tmp_path / "out", sections=("steps", "ops"))
    assert (report.steps.source, report.steps.count, report.steps.partial) == ("marker", 3, 0)
    assert {"aten::linear", "Optimizer.step#Adam.step"} <= {row.name for row in report.ops.rows} | set(
        stepscope.load(tmp_path / "out").events["name"].cast(str).to_list()
    )


@needs("torch")
def test_input_workers(tmp_path: Path) -> None:
    """The report names what the loader's process was slow at."""
    import stepscope

    def attempt(number: int) -> None:
        out = tmp_path / str(number)
        launched(tmp_path, "--steps", "4:8", "-o", out, "--", sys.executable, LOOPS, "workers", 12)
        (note,) = sidecars(out)
        (worker,) = note["input"]["workers"]
        assert worker["batches"] >= 3
        found = stepscope.report(out, sections=("input",)).input
        assert "decode" in found.verdict
        assert any(row.name.endswith(": decode") for row in found.stages)

    measured(attempt)


@needs("torch")
def test_workers_of_torchrun(tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = launched(tmp_path, "--steps", "4:5", "-o", "out", "--", *torchrun, LOOPS, "gan_no_loader", 9)
    notes = sidecars(tmp_path / "out")
    assert sorted(note["rank"] for note in notes) == [0, 1]
    assert len({note["run"] for note in notes}) == 1
    assert len(traces(tmp_path / "out")) == 2
    assert "Recorded steps 4 to 5 of 2 workers into out." in ended.stderr
    import stepscope

    assert len(stepscope.load(tmp_path / "out").traces) == 2


@needs("torch")
def test_forked_workers_and_a_job_that_records_itself(tmp_path: Path) -> None:
    launched(tmp_path, "--steps", "2:3", "-o", "out", "--", sys.executable, LOOPS, "forked", 6)
    assert len(traces(tmp_path / "out")) == 2
    ended = launched(
        tmp_path, "--steps", "2:3", "-o", "other", "--", sys.executable, LOOPS, "own_profiler", 6
    )
    assert (len(traces(tmp_path / "own")), len(traces(tmp_path / "other"))) == (1, 0)
    assert "The job already records a profile itself" in ended.stderr


@pytest.mark.parametrize(
    ("framework", "first", "last", "mine"),
    [
        pytest.param("torch", 2, 12, 11, marks=[needs("torch"), in_soak], id="torch before ours"),
        pytest.param("torch", 6, 7, 2, marks=needs("torch"), id="torch inside ours"),
        pytest.param("jax", 6, 12, 1, marks=needs("jax"), id="jax beyond ours"),
    ],
)
def test_the_jobs_own_profiler_comes_first(
    tmp_path: Path, framework: str, first: int, last: int, mine: int
) -> None:
    job = (JOBS / "clash.py", framework, first, last, tmp_path / "own")
    ended = launched(tmp_path, "--steps", "5:9", "-o", "out", "--", sys.executable, *job)
    assert (ended.returncode, ended.stdout) == (0, f"{mine}\n"), ended.stderr[-3000:]
    assert "Another profiler is running" in ended.stderr
    assert traces(tmp_path / "out") == []


@in_soak
@needs("torch")
def test_sigterm_inside_the_window(tmp_path: Path) -> None:
    """The window is written, and the exit is the one that the job would have had."""
    job = script(
        tmp_path,
        "import time, torch\nw = torch.nn.Linear(4, 4)\no = torch.optim.SGD(w.parameters(), lr=1)\n"
        "for n in range(100000):\n    w(torch.ones(1, 4)).sum().backward()\n    o.step()\n    time.sleep(0.01)\n"
        "    n == 5 and print('here', flush=True)\n",
    )
    process = launch(tmp_path, "--steps", "2:90000", "-o", "out", "--", sys.executable, job)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == -signal.SIGTERM
    assert len(traces(tmp_path / "out")) == 1


@needs("torch", "accelerate")
def test_accelerate(tmp_path: Path) -> None:
    job = script(
        tmp_path,
        "import torch\nfrom accelerate import Accelerator\n"
        "a = Accelerator(cpu=True, gradient_accumulation_steps=2)\nm = torch.nn.Linear(4, 4)\n"
        "o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "d = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(48, 4)), batch_size=2)\n"
        "m, o, d = a.prepare(m, o, d)\n"
        "for (x,) in d:\n    with a.accumulate(m):\n        a.backward(m(x).sum())\n        o.step()\n        o.zero_grad()\n",
    )
    accelerate = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"]
    ended = launched(tmp_path, "--steps", "3:4", "-o", "out", "--", *accelerate, job)
    (note,) = sidecars(tmp_path / "out")
    assert sum(count for _, count in lengths(note).values()) in (11, 12), ended.stderr[-2000:]


@needs("keras", "jax")
@pytest.mark.parametrize(
    "backend", ["jax", *(pytest.param(name, marks=in_soak) for name in ("tensorflow", "torch"))]
)
def test_keras(tmp_path: Path, backend: str) -> None:
    pytest.importorskip(backend)
    words = ("--steps", "4:6", "-o", "out", "--", sys.executable, LOOPS, "keras", 12)
    ended = launched(tmp_path, *words, KERAS_BACKEND=backend)
    notes = [note for note in sidecars(tmp_path / "out") if note["backend"] == backend]
    assert len(notes) == 1, ended.stderr[-2000:]
    assert lengths(notes[0])["inside"] == (4, 3)
    assert sum(count for _, count in lengths(notes[0]).values()) == 12


@needs("jax")
def test_jax_markers(tmp_path: Path) -> None:
    launched(tmp_path, "--steps", "4:6", "-o", "out", "--", sys.executable, LOOPS, "jax_markers", 12)
    import stepscope

    report = stepscope.report(tmp_path / "out", sections=("steps",))
    assert (report.steps.source, report.steps.count) == ("marker", 3)


@needs("torch")
def test_the_page(tmp_path: Path) -> None:
    """Its first command, on its own train.py."""
    page = (ROOT / "docs" / "capture" / "run.md").read_text("utf-8")
    (tmp_path / "train.py").write_text(page.split("```python\n")[1].split("```")[0])
    command = page.split("```\n")[1].splitlines()[0].split()
    assert command[:2] == ["stepscope", "run"]
    ended = launched(tmp_path, *(sys.executable if word == "python" else word for word in command[2:]))
    assert "Recorded steps 10 to 15 into logs/run1." in ended.stderr


# ---- small parts


@pytest.mark.parametrize(
    ("text", "steps"), [("10:15", (10, 15)), ("7", (7, 7)), (":5", (0, 5)), ("0:0", (0, 0))]
)
def test_ranges_of_steps(text: str, steps: tuple[int, int]) -> None:
    assert steps_of(text) == steps


@pytest.mark.parametrize("text", ["", ":", "5:", "a", "9:3", "-1:2", "1:2:3"])
def test_wrong_ranges_of_steps(text: str) -> None:

    with pytest.raises(WrongUsage):
        steps_of(text)


def test_commands(tmp_path: Path) -> None:
    job = script(tmp_path, "")
    assert command_of(["--", "torchrun", "x.py"]) == ["torchrun", "x.py"]
    assert command_of([str(job), "-m"]) == [sys.executable, str(job), "-m"]
    job.chmod(0o755)
    assert command_of([str(job)]) == [str(job)]


def test_the_plan_travels_through_the_environment() -> None:
    plan = Plan("out", 10, 15, "notes", {"stacks": False})
    env = environment(plan, {"PYTHONPATH": "mine", "STEPSCOPE_RUN": "outer"})
    assert plan_of(env) == plan
    assert env["PYTHONPATH"].endswith(f"hook{os.pathsep}mine")
    assert env["STEPSCOPE_RUN"] == "outer"
    assert (
        plan_of({}) is plan_of({"STEPSCOPE_LAUNCH": "{"}) is plan_of({"STEPSCOPE_LAUNCH": '{"a": 1}'}) is None
    )


def test_notes(tmp_path: Path) -> None:
    write_note(Plan("out", 1, 2, str(tmp_path)), {"steps": 3})
    (tmp_path / "1.json").write_text("[]")
    (tmp_path / "2.json").write_text("{")
    assert list(read_notes(tmp_path)) == [{"steps": 3}]
    write_note(Plan("out", 1, 2, str(tmp_path / "gone")), {})
    write_note(Plan("out", 1, 2), {})


@pytest.mark.parametrize(
    ("code", "how"),
    [(-11, "was ended by SIGSEGV."), (-9, "was ended by SIGKILL."), (-63, "was ended by signal 63."), (3, "ended with exit code 3.")],
)  # fmt: skip
def test_the_outcome_of_a_job_that_died(code: int, how: str) -> None:
    told = outcome(Plan("out", 1, 2), [], "out", ["python", "my train.py"], code)
    assert told.text.startswith(f"Nothing was recorded: the job {how}\nNext: python 'my train.py'")
    assert not told.is_good


def test_the_outcome_without_a_loop() -> None:
    told = outcome(Plan("out", 1, 2), [{"steps": 0, "frameworks": ["jax"]}], "out", ["train"])
    assert "no training loop was detected in a job with jax" in told.text
    assert "stepscope.step()" in told.text
    assert not told.is_good


def test_the_snapshot_of_an_out_of_memory_error_is_named_last() -> None:
    """Behind the job's own traceback."""
    note = {"steps": 5, "frameworks": ["torch"], "files": ["a.json"], "snapshots": ["out/my snapshot.pickle"]}
    found = outcome(Plan("out", 1, 2), [note], "out", ["train"], 1)
    assert found.is_good
    assert found.text.endswith("Out of memory: stepscope report 'out/my snapshot.pickle'")

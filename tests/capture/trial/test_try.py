"""`stepscope try` on real jobs: ratios, not absolute times."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from stepscope.trial.conduct import Outcome, conduct, make_runner
from stepscope.trial.run import run_once
from tests.cli.run import environment
from tests.patience import measured

LIMITS = {"warmup": 3, "steps": 8, "least_s": 0.2, "most_s": 20.0}
# An optimizer of the job's own: with the first of PyTorch's, two seconds go into importing torch._dynamo, in every run.
DESCENT = """
    import torch

    class Descent(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})
        def add_param_group(self, group):
            self.param_groups.append(group)
        def zero_grad(self):
            for each in self.param_groups[0]["params"]:
                each.grad = None
        @torch.no_grad()
        def step(self):
            for each in self.param_groups[0]["params"]:
                each -= 1e-4 * each.grad
"""
TRAIN = f"""{DESCENT}
    import time
    from torch.utils.data import DataLoader, Dataset
    torch.manual_seed(0)
    torch.set_num_threads(1)

    class Images(Dataset):
        def __len__(self):
            return 100_000
        def __getitem__(self, place):
            time.sleep(0.03)
            return torch.full((16,), 1.0), torch.ones(1)

    model = torch.nn.Linear(16, 1)
    optimizer = Descent(model.parameters())
    for place, (x, y) in enumerate(DataLoader(Images(), batch_size=4)):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save(model.state_dict(), "checkpoint.pt")
        with open("notes.txt", "a") as notes:
            notes.write("x")
"""


def write(folder: Path, source: str) -> list[str]:
    """A script, and the command that runs it."""
    (folder / "train.py").write_text(dedent(source), "utf-8")
    return [sys.executable, "train.py"]


def tried(folder: Path, source: str, names: Sequence[str]) -> Outcome:
    """In one round: that more of them are put together is in tests/trial, and each run imports the framework again."""
    run = make_runner(write(folder, source), folder, 120, **LIMITS)
    return conduct(dict.fromkeys(names), run, 1, lambda _: None, folder)


def test_workers_bf16_and_what_cannot_be_done(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    def attempt(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        outcome = tried(folder, TRAIN, ["workers", "bf16", "tf-xla"])
        workers, bf16, xla = outcome.tried
        assert workers.measured is not None and bf16.measured is not None
        assert workers.measured.mid > 1.25 * bf16.measured.mid
        assert workers.is_loss_close
        assert bf16.loss is not None
        assert "its framework was not imported" in xla.failure
        assert outcome.files == ["notes.txt"]
        assert outcome.redirected >= 8
        assert not (folder / "checkpoint.pt").exists()

    measured(attempt)


COMPILED = """
    import time, torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3)))
    model(torch.ones(2, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    if model._compiled_call_impl is None:
        waits = 0.03
    else:
        waits = 0.01
    for _ in range(10_000):
        time.sleep(waits)
        loss = model.forward(torch.ones(2, 8)).sum()
        loss.backward()
        optimizer.step()
"""


def test_compile_reaches_the_outermost_module(tmp_path: Path) -> None:
    """The job waits less where its model is compiled: whether the compiler itself is fast here is not the question."""
    pytest.importorskip("torch")
    (found,) = tried(
        tmp_path,
        "import torch\ntorch._dynamo.config.suppress_errors = True\n" + dedent(COMPILED),
        ["compile"],
    ).tried
    assert found.measured is not None, found.failure
    assert found.measured.mid > 1.5


def test_tf_data_prefetch(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    source = """
        import time, tensorflow as tf
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        def load(place):
            time.sleep(0.03)
            return [[1.0] * 4], [[1.0]]
        def wrapped(place):
            x, y = tf.py_function(load, [place], [tf.float32, tf.float32])
            x.set_shape((1, 4)); y.set_shape((1, 1))
            return x, y
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        for x, y in tf.data.Dataset.range(100_000).map(wrapped).with_options(options):
            model.train_on_batch(x, y)
            time.sleep(0.03)
    """
    (found,) = tried(tmp_path, source, ["tf-prefetch"]).tried
    assert found.measured is not None, found.failure
    assert found.measured.mid > 1.2


def test_a_job_that_fails_ends_early_or_has_no_loop(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    failed = run_once(
        write(tmp_path, "raise SystemExit('no data')"), (), timeout_s=60, folder=tmp_path, limits=LIMITS
    )
    assert failed.step_ns is None
    assert failed.tail == ("no data",)
    early = run_once(
        write(tmp_path, TRAIN.replace("100_000", "32")), (), timeout_s=60, folder=tmp_path, limits=LIMITS
    )
    assert (early.result.ended, early.result.steps) == ("ended", 5)
    assert early.step_ns is not None
    plain = run_once(
        write(tmp_path, "import time\nfor _ in range(5): time.sleep(0.02)\n"),
        (),
        timeout_s=60,
        folder=tmp_path,
        limits=LIMITS,
    )
    assert plain.result.steps == 0
    assert plain.step_ns is not None and plain.step_ns >= 1e8
    endless = run_once(
        write(tmp_path, "import time\nwhile True: time.sleep(1)\n"),
        (),
        timeout_s=2,
        folder=tmp_path,
        limits=LIMITS,
    )
    assert endless.failure == "did not end within 2 s"


def test_the_command_from_findings_to_settings(tmp_path: Path) -> None:
    """Recording, findings, runs, the table, and `run --with` what won."""
    pytest.importorskip("torch")
    command = write(tmp_path, TRAIN)
    cli = [sys.executable, "-m", "stepscope"]
    options = [
        "--rounds",
        "2",
        "--seconds",
        "0.2",
        "--steps",
        "8",
        "--yes",
        "--apply",
        "won.json",
        "--record",
        "kept.trial.jsonl",
    ]
    ended = subprocess.run([*cli, "try", *options, "--only", "input-bound", "--", *command], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "change" in ended.stdout and "promised" in ended.stdout
    line = next(line for line in ended.stdout.splitlines() if line.startswith("workers"))
    assert "–" in line
    assert (tmp_path / "won.json").exists()
    assert "input-bound" in (tmp_path / "kept.trial.jsonl").read_text("utf-8")
    (tmp_path / "won.json").write_text('{"changes": ["workers"]}')
    counted = (
        "if place == 5:\n            print('workers', len(__import__('multiprocessing').process._children))"
    )
    short = write(
        tmp_path,
        TRAIN.replace("100_000", "120").replace("torch.save(model", f"{counted}\n        torch.save(model"),
    )
    again = subprocess.run([*cli, "run", "--with", "won.json", "-o", "logs", "--", *short], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert re.search(r"workers [1-9]", again.stdout)


def test_it_asks_before_the_first_run(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "stepscope", "try", "--", *write(tmp_path, "print(1)")],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "--yes" in ended.stderr


FORKS = """
    import multiprocessing, time

    def train(place):
        import stepscope
        if place:
            time.sleep(1_000)  # waits for a rank that has left
        while True:
            time.sleep(0.005)
            stepscope.step()

    if __name__ == "__main__":
        ranks = [multiprocessing.get_context("METHOD").Process(target=train, args=(place,)) for place in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        raise SystemExit(1)
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_job_of_several_processes_ends_when_one_has_enough(tmp_path: Path, method: str) -> None:
    found = run_once(write(tmp_path, FORKS.replace("METHOD", method)), (), timeout_s=60, folder=tmp_path, limits=LIMITS)  # fmt: skip
    assert (found.failure, found.result.ended) == ("", "enough")
    assert found.result.steps >= 8


def test_a_change_that_meets_nothing_is_no_measurement(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    plain = f"""{DESCENT}
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = Descent(model.parameters())
    for _ in range(100_000):
        loss = model(torch.ones(2, 4)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    names = ("workers", "channels-last", "no-checkpointing")
    ran = run_once(write(tmp_path, plain), names, timeout_s=120, folder=tmp_path, limits=LIMITS)
    assert ran.step_ns is None
    why = ran.result.changes
    assert "no DataLoader" in why["workers"]
    assert "2-D convolutions" in why["channels-last"]
    assert "checkpoints no activations" in why["no-checkpointing"]
    assert ran.failure.startswith("could not be applied: ") and all(name in ran.failure for name in names)


def test_the_loss_that_a_jitted_function_returns(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    source = """
        import jax, jax.numpy as jnp
        jax.config.update("jax_default_matmul_precision", "highest")
        params, x = jnp.ones((8, 8)), jnp.ones((4, 8))
        def loss_of(params, x):
            return jnp.mean((x @ params) ** 2)
        @jax.jit
        def train_step(params, x):
            loss, gradient = jax.value_and_grad(loss_of)(params, x)
            return params - 0.001 * gradient, loss
        while True:
            params, loss = train_step(params, x)
            loss.block_until_ready()
    """
    (found,) = tried(tmp_path, source, ["jax-tf32"]).tried
    assert found.measured is not None, found.failure
    assert found.is_loss_close
    assert found.unchanged_loss is not None and 0 < found.unchanged_loss < 64

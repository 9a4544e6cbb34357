"""Every verb, form and extra once, in an environment that `make versions` has made: broken dependencies show here.

Not named as a test, since `make test` asks all of this more closely. It runs without the project's conftest.py, and so
without hypothesis.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import polars as pl
import pytest

import stepscope
from tests.builders.ranks import write_ranks
from tests.cli.inside import stepscope as inside
from tests.cli.inside import succeeds
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
SLOW, FIXED = (FIXTURES / "diagnosis" / f"torch_item.{name}.pt.trace.json.gz" for name in ("slow", "mended"))
XPLANE = FIXTURES / "diagnosis" / "jax_input.slow.xplane.pb.gz"
COMMAND = Path(sys.executable).parent / "stepscope"
EVENTS = "SELECT kind, COUNT(*) AS events FROM events GROUP BY kind ORDER BY kind"


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPSCOPE_CACHE", str(tmp_path_factory.mktemp("caches") / "cache"))
        yield


def installed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The installed command in a process of its own: as a user and a CI job start it."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", check=False
    )


def test_what_is_installed_is_tested() -> None:
    """Not the sources: those would be found whatever the package lacks."""
    assert Path(stepscope.__file__).is_relative_to(sys.prefix)
    assert {"load", "report", "diff", "profile"} <= set(dir(stepscope))


def test_the_hot_loops_are_what_was_built() -> None:
    from stepscope import native

    found = "interpreted" if native.interpreted() else "compiled"
    assert found == os.environ.get("STEPSCOPE_EXPECT", found)


def test_version() -> None:
    ended = installed("--version")
    assert (ended.returncode, ended.stdout) == (0, f"stepscope {stepscope.__version__}\n")


@pytest.mark.parametrize("path", [SLOW, XPLANE], ids=["kineto", "xplane"])
def test_info(path: Path) -> None:
    ended = installed("info", path)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"steps +\d+ \(", ended.stdout)


@pytest.mark.parametrize("form", ["text", "json", "md", "html"])
def test_report(form: str, tmp_path: Path) -> None:
    target = tmp_path / f"report.{form}"
    assert inside("report", SLOW, "--format", form, "-o", target).returncode == 0
    text = target.read_text("utf-8")
    assert "The host waits for the device inside the step" in text
    if form == "json":
        assert json.loads(text)["schema"].startswith("stepscope.report/")


def test_report_as_csv_files(tmp_path: Path) -> None:
    assert inside("report", SLOW, "--format", "csv", "-o", tmp_path / "tables").returncode == 0
    assert (tmp_path / "tables" / "ops.csv").read_text("utf-8").startswith("name,")


def test_report_in_a_process_of_its_own() -> None:
    ended = installed("report", SLOW, "--section", "findings")
    assert ended.returncode == 0, ended.stderr
    assert "waits for the device" in ended.stdout


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_query(form: str, tmp_path: Path) -> None:
    target = tmp_path / f"rows.{form}"
    assert inside("query", SLOW, EVENTS, "--format", form, "-o", target).returncode == 0
    if form == "parquet":
        assert "kernel" in pl.read_parquet(target)["kind"].to_list()
    else:
        assert "kernel" in target.read_text("utf-8")


@pytest.mark.parametrize("form", ["text", "json", "md", "html"])
def test_diff(form: str, tmp_path: Path) -> None:
    target = tmp_path / f"diff.{form}"
    assert inside("diff", FIXED, SLOW, "--format", form, "-o", target).returncode == 0
    assert target.read_text("utf-8")


@pytest.mark.parametrize(
    ("limits", "code", "says"),
    [
        ('step_time = "20 ms"', 0, "PASSED: 1 of 1 limit met"),
        ('step_time = "10 ms"', 3, "FAILED: 1 of 1 limit exceeded"),
        ('peak_memory = "24 GB"', 3, "UNKNOWN: 1 of 1 limit unknown"),
        ("", 1, "sets no limits"),
    ],
)
def test_check(limits: str, code: int, says: str, tmp_path: Path) -> None:
    """A gate that passes what it has not judged is worse than none."""
    budget = tmp_path / "budgets.toml"
    budget.write_text(limits, "utf-8")
    ended = installed("check", SLOW, "--budget", budget)
    assert (ended.returncode, says in ended.stdout + ended.stderr) == (code, True), ended


def test_diff_as_a_gate() -> None:
    assert inside("diff", FIXED, SLOW, "--fail-on", "5%").returncode == 3
    assert inside("diff", FIXED, SLOW, "--fail-on", "500%").returncode == 0


def test_wrong_usage() -> None:
    assert installed("report").returncode == 2
    assert inside("check", SLOW, "--no-such-option").returncode == 2


@pytest.mark.parametrize("verb", ["info", "report", "diff", "check", "query", "export", "doctor", "serve"])
def test_help(verb: str) -> None:
    assert f"stepscope {verb}" in succeeds(verb, "--help")


def test_export(tmp_path: Path) -> None:
    assert inside("export", SLOW, "--to", "chrome", "-o", tmp_path / "out.json.gz").returncode == 0
    assert succeeds("query", tmp_path / "out.json.gz", EVENTS) == succeeds("query", SLOW, EVENTS)
    assert inside("export", SLOW, "--to", "parquet", "-o", tmp_path / "tables").returncode == 0
    assert (tmp_path / "tables" / "events.parquet").is_file()


def test_doctor(tmp_path: Path) -> None:
    found = json.loads(inside("doctor", SLOW, "--format", "json").stdout)
    assert found["schema"] == "stepscope.doctor/1"
    ended = installed("doctor", "--logdir", tmp_path)
    assert ended.returncode in (0, 3), ended.stderr  # 3: something about this machine, in words
    assert "Traceback" not in ended.stderr


def test_a_plain_loop_is_recorded(tmp_path: Path) -> None:
    example = ROOT / "examples" / "plain_training.py"
    subprocess.run([sys.executable, example, tmp_path / "logs"], check=True, capture_output=True)
    found = json.loads(succeeds("report", tmp_path / "logs", "--format", "json"))
    assert found["steps"]["count"] == 6


@pytest.mark.stepscope(step_time="60 s", warmup=0)
def test_the_marker_records_and_judges() -> None:
    for _ in range(3):
        sum(range(1000))
        stepscope.step()


@contextmanager
def serving(*arguments: str | Path) -> Iterator[str]:
    """`stepscope serve`, and the address it prints."""
    command = [str(COMMAND), "serve", *map(str, arguments), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            found = next(filter(None, (re.search(r"http://\S+", line) for line in lines)), None)
            assert found is not None, "the server ended without an address"
            yield found[0]
        finally:
            process.terminate()


def test_serve() -> None:
    """Plotly's JavaScript comes out of the installed package, where its folders may have been renamed."""
    with serving(SLOW.parent) as address:
        place, _, token = address.partition("?token=")
        for path, least in (
            ("", 500),
            ("web/shell/main.js", 500),
            ("api/state", 10),
            ("vendor/plotly.min.js", 10**6),
        ):
            request = Request(place + path, headers={"Authorization": f"Bearer {token}"})
            with urlopen(request, timeout=PATIENCE_S) as answer:
                assert answer.status == 200
                assert len(answer.read()) > least


def test_fsspec() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("memory://bucket/rank0.pt.trace.json.gz", SLOW.read_bytes())
    assert stepscope.load("memory://bucket/rank0.pt.trace.json.gz").events.height > 0


def test_pandas() -> None:
    frame = stepscope.load(SLOW).to_pandas("events")
    assert {"name", "dur_ns"} <= set(frame.columns)
    assert len(frame) == stepscope.load(SLOW).events.height


def test_dask(tmp_path: Path) -> None:
    import distributed

    folder = write_ranks(tmp_path / "run")
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(
        **options, memory_limit=0, host="127.0.0.1", local_directory=str(tmp_path / "dask"), silence_logs=50
    ) as cluster:
        text = succeeds("report", folder, "--format", "json", "--cluster", cluster.scheduler_address)
    here = succeeds("report", folder, "--format", "json", "--workers", "0")
    assert json.loads(text)["findings"] == json.loads(here)["findings"]


def test_grpc(tmp_path: Path) -> None:
    """A profiler server that sends an XSpace, asked by `stepscope capture`."""
    import gzip

    import grpc

    from stepscope.capture.remote.profiler_servers import _field

    answer = _field(8, gzip.decompress(XPLANE.read_bytes()))
    handler = grpc.unary_unary_rpc_method_handler(lambda *_: answer)
    server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("tensorflow.ProfilerService", {"Profile": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        ended = inside("capture", f"grpc://127.0.0.1:{port}", "--seconds", "0.1", "-o", tmp_path)
    finally:
        server.stop(None).wait()
    assert ended.returncode == 0, ended.stderr
    assert list(tmp_path.rglob("*.xplane.pb"))

"""The same report wherever ranks are read: here, in local processes, on a real Dask cluster; also when a process dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import stepscope
from stepscope.analysis.options import Options
from stepscope.cluster import work
from stepscope.cluster.place import FAN_IN, tree
from stepscope.cluster.report import report
from stepscope.cluster.sides import side
from stepscope.diffs.build import diff_sides
from stepscope.errors import StepscopeError
from stepscope.registers.policy.ranks import EXAMINED_RANKS
from tests.builders.jobs.parallel_job import Job, write
from tests.builders.ranks import write_ranks
from tests.cluster import deadly
from tests.patience import PATIENCE_S
from tests.profiles.find.test_sidecars import note
from tests.sample import SOAKS

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

# That all sections are the same everywhere is one test; the others look at what ranks have to do with each other.
FEW = ["collectives"]
# Where two tests look at sections of their own; elsewhere the others do.
IN_THIS_PROCESS = (0,) if SOAKS else ()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and two worker processes on loopback, which may take as long and as much memory as they need."""
    options: dict[str, Any] = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
        "memory_limit": 0,  # by itself each would get its share of the cores in memory: little, where there are many
        "local_directory": str(tmp_path_factory.mktemp("dask")),
    }
    settings = {
        "distributed.scheduler.allowed-failures": 1,  # a task that ended two workers is given up: more would take time
        "distributed.comm.timeouts.connect": f"{PATIENCE_S}s",
        "distributed.comm.timeouts.tcp": f"{PATIENCE_S}s",
        "distributed.deploy.lost-worker-timeout": f"{PATIENCE_S}s",
    }
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set(settings),
        distributed.LocalCluster(**options, host="127.0.0.1", silence_logs=50) as cluster,
    ):
        patch.setattr("stepscope.cluster.on_dask.CONNECT_SECONDS", PATIENCE_S)
        yield cluster.scheduler_address


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """Four ranks, of which rank 2 is late."""
    return write_ranks(tmp_path / "run")


def plain(found: Any) -> Any:
    """All of it, as plain values."""
    return msgspec.to_builtins(found)


def test_the_same_everywhere(ranks: Path, scheduler: str) -> None:
    here = stepscope.report(ranks)
    assert here.collectives.straggler is not None
    assert (here.collectives.straggler.rank, here.collectives.straggler.cause) == (2, "work")
    for where in (1, scheduler, *IN_THIS_PROCESS):
        assert plain(report(ranks, where=where)) == plain(here), where


def test_groups_apart_are_as_all_together(tmp_path: Path, scheduler: str) -> None:
    """Meetings are put together by process group, and only sums of them travel; in one process they are one table."""
    job = Job(
        stages=2, replicas=3, steps=4, micro_batches=2, device=lambda rank, _: 1.3 if rank == 5 else 1.0
    )
    folder = write(job, tmp_path / "run")
    here = stepscope.report(folder, sections=["findings", "collectives", "ops"])
    assert len(here.profile.ranks) == 12
    assert 5 in here.profile.examined
    assert len(here.profile.examined) <= EXAMINED_RANKS
    assert here.collectives.matched > 0
    for where in (scheduler, *((0, 2) if SOAKS else ())):
        found = report(folder, where=where, sections=["findings", "collectives", "ops"])
        assert plain(found) == plain(here), where


def test_a_client_of_ones_own_stays_connected(ranks: Path, scheduler: str) -> None:
    with distributed.Client(scheduler, set_as_default=False) as client:
        assert report(ranks, where=client, sections=["steps"]).profile.ranks == [0, 1, 2, 3]
        assert client.status == "running"


def test_ranks_that_files_dispute(ranks: Path) -> None:
    """Two files say that they are rank 0; names decide, and those that were read under another number are read again."""
    for rank in (1, 2):
        file = ranks / f"job_rank{rank}.pt.trace.json"
        file.write_text(file.read_text().replace(f'"rank": {rank}', '"rank": 0'))
    assert plain(report(ranks, where=0, sections=FEW)) == plain(stepscope.report(ranks, sections=FEW))


def test_one_rank_alone(ranks: Path) -> None:
    assert plain(report(ranks, where=0, rank=3, sections=FEW)) == plain(
        stepscope.report(ranks, rank=3, sections=FEW)
    )


def test_a_process_that_dies_is_replaced(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file kills its first reader, another every one: only that is lost."""
    monkeypatch.setattr(work, "analyse", deadly.analyse)
    (ranks / "job_rank1.pt.trace.json.kill").touch()
    (ranks / "job_rank3.pt.trace.json.kills").touch()
    found = report(ranks, where=2, sections=FEW)
    assert found.profile.ranks == [0, 1, 2]
    assert found.collectives.straggler is not None and found.collectives.straggler.rank == 2
    assert any("ended the process" in problem.detail for problem in found.problems)


def test_a_worker_that_dies_is_replaced(ranks: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask computes again what it held; a file that kills every worker costs only itself."""
    monkeypatch.setattr(work, "analyse", deadly.analyse)
    (ranks / "job_rank1.pt.trace.json.kill").touch()
    (ranks / "job_rank3.pt.trace.json.kills").touch()
    found = report(ranks, where=scheduler, sections=FEW)
    assert found.profile.ranks == [0, 1, 2]
    assert found.collectives.straggler is not None and found.collectives.straggler.rank == 2
    assert any("KilledWorker" in problem.detail for problem in found.problems)


def test_progress(ranks: Path) -> None:
    seen: list[tuple[int, int]] = []
    report(ranks, where=0, sections=["steps"], progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 4 and seen[-1][0] == seen[-1][1] > 0


def test_no_scheduler(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear message, and what to do."""
    monkeypatch.setattr("stepscope.cluster.on_dask.CONNECT_SECONDS", 1)
    with pytest.raises(StepscopeError, match="No Dask scheduler answers") as error:
        report(ranks, where="tcp://127.0.0.1:1")
    assert "dask scheduler" in str(error.value)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError):
        report(tmp_path, where=0)


def test_a_tree_puts_a_few_together_at_a_time() -> None:
    widths: list[int] = []

    def join(items: Any) -> Any:
        widths.append(len(items))
        return sum(items)

    assert tree(join, list(range(300))) == sum(range(300))
    assert max(widths) == FAN_IN
    assert tree(sum, []) == 0


def test_a_side_of_a_diff(tmp_path: Path) -> None:
    """What the diff wants of a run is the same, too."""
    one, other = (write_ranks(tmp_path / f"late {late}", ranks=2, late=late) for late in (0, 1))
    before, after = (side(path, Options(limit=0), where=0) for path in (one, other))
    assert plain(diff_sides(before, after)) == plain(stepscope.diff(one, other))


def test_ranks_show_one_region_together(tmp_path: Path, scheduler: str) -> None:
    """Rank 0 by itself would show the other one."""
    folder = write_ranks(tmp_path / "run", ranks=3)
    for rank, which in enumerate([[1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0]]):
        regions = {"names": ["collect", "train"], "first": 0, "passes": 4, "which": which}
        note(folder, f"job_rank{rank}", rank=rank, world_size=3, regions=regions, last_step=3)
    steps = ["steps"]
    here = stepscope.report(folder, sections=steps)
    assert here.steps.region == "collect"
    assert {(row.rank, row.step) for row in here.steps.rows} == {
        (0, 3), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 3)
    }  # fmt: skip
    assert stepscope.report(folder, rank=0, sections=steps).steps.region == "train"
    assert stepscope.report(folder, step_name="train", sections=steps).steps.region == "train"
    for where in (scheduler, *IN_THIS_PROCESS):
        assert plain(report(folder, where=where, sections=steps)) == plain(here), where

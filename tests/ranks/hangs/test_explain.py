"""Why ranks hang, of dumps with a known cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.errors import StepscopeError
from stepscope.reports.build import report
from stepscope.reports.model.report import Hang
from stepscope.reports.report import Report
from tests.builders.dumps import CREATED_NS, dump, entry, hang, pending, put_dumps, usual


def report_of(folder: Path, dumps: dict[int, dict[str, Any]]) -> Report:
    return report(str(put_dumps(folder, dumps)))


def explained(folder: Path, dumps: dict[int, dict[str, Any]]) -> Hang:
    return report_of(folder, dumps).hang


def test_a_rank_that_did_not_come(tmp_path: Path) -> None:
    found = report_of(tmp_path, hang())
    assert found.sentence == (
        "Ranks 0–1, 3 wait in all_reduce at train.py:88; rank 2 has not called it and is in no collective; "
        "the last one was all_reduce at train.py:88."
    )
    assert (found.hang.kind, found.hang.culprits) == ("absent", [2])
    assert [(each.state, each.ranks) for each in found.hang.ranks] == [("outside", [2]), ("waits", [0, 1, 3])]
    assert [each.code for each in found.problems] == ["hang"]
    assert not found.steps.rows and not found.findings


def test_a_rank_without_a_dump(tmp_path: Path) -> None:
    dumps = hang()
    del dumps[2]
    found = explained(tmp_path, dumps)
    assert (found.kind, found.culprits) == ("dead", [2])
    assert found.sentence.endswith("rank 2 has not come and left no dump: it died, or the dump is not here.")


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            pending("nccl:all_reduce", 5, input_sizes=((512,),)),
            "size",
            "Rank 2 called all_reduce with [512] at train.py:88 where ranks 0–1, 3 passed [1024].",
        ),
        (
            pending("nccl:all_reduce", 5, input_dtypes=["Half"], output_dtypes=["Half"]),
            "dtype",
            "Rank 2 called all_reduce of Half at train.py:88 where ranks 0–1, 3 passed Float.",
        ),
        (
            pending("nccl:broadcast", 5, line=40),
            "op",
            "Rank 2 called broadcast at train.py:40 where ranks 0–1, 3 called all_reduce at train.py:88; "
            "it skipped a call, or makes its calls in another order.",
        ),
    ],
)
def test_a_call_that_differs(tmp_path: Path, call: dict[str, Any], kind: str, words: str) -> None:
    found = explained(tmp_path, hang(entries=[*usual(), call]))
    assert (found.kind, found.culprits, found.sentence) == (kind, [2], words)


@pytest.mark.parametrize(
    ("own", "others", "how"),
    [
        (["broadcast", "all_reduce"], ["all_reduce", "broadcast"], "makes these calls in another order"),
        (["broadcast"], ["all_reduce", "broadcast"], "it skipped that call"),
        (["broadcast", "all_reduce"], ["all_reduce"], "it made a call that the others did not"),
    ],
)
def test_later_calls_show_what_happened(tmp_path: Path, own: list[str], others: list[str], how: str) -> None:
    def calls(names: list[str]) -> dict[str, Any]:
        return dump([*usual(), *(pending(f"nccl:{name}", 5 + place) for place, name in enumerate(names))])

    found = explained(tmp_path, {rank: calls(own if rank == 2 else others) for rank in range(4)})
    assert how in found.sentence


def test_sizes_that_may_differ(tmp_path: Path) -> None:
    def gathered(size: int) -> dict[str, Any]:
        return dump([*usual(), pending("nccl:all_to_all", 5, input_sizes=((size,),))])

    found = explained(tmp_path, {rank: gathered(100 + rank) for rank in range(4)})
    assert found.kind == "stuck"
    assert found.sentence == (
        "All 4 ranks of group default_pg (0) called all_to_all at train.py:88, and it does not complete: the transfer itself hangs."
    )


def test_a_device_that_has_not_begun(tmp_path: Path) -> None:
    """All called it; on rank 2 something before it does not end."""
    found = explained(tmp_path, hang(entries=[*usual(), pending("nccl:all_reduce", 5, state="scheduled")]))
    assert (found.kind, found.culprits) == ("device", [2])
    assert found.sentence == (
        "Ranks 0–1, 3 wait in all_reduce at train.py:88; rank 2 called it, too, but its device has not begun it: "
        "work before it does not end."
    )


def test_nothing_is_pending(tmp_path: Path) -> None:
    found = report_of(tmp_path, {rank: dump(usual()) for rank in range(4)})
    assert found.hang.kind == "none"
    assert [each.code for each in found.problems] == ["nothing-pending"]


def test_a_full_buffer_has_dropped_old_calls(tmp_path: Path) -> None:
    """Rank 0 no longer has the numbers that the others have."""
    late = dump([entry("nccl:all_reduce", 4), pending("nccl:all_reduce", 5)])
    found = explained(tmp_path, {**hang(), 0: late})
    assert found.culprits == [2]


def test_a_failed_call_of_gloo_is_retired(tmp_path: Path) -> None:
    """When another rank is gone, gloo ends the call on all others."""
    failed = entry("gloo:all_reduce", 5, state="scheduled")
    before = [entry("gloo:all_reduce", number, state="scheduled") for number in range(1, 5)]
    found = explained(tmp_path, {rank: dump([*before, failed]) for rank in (0, 1, 3)})
    assert (found.kind, found.culprits) == ("dead", [2])


def test_the_cause_is_the_group_that_waits_for_no_other(tmp_path: Path) -> None:
    """Ranks 0 and 1 wait for 2, which waits in another group for 3, which is nowhere."""
    config = {
        "1": {"name": "1", "desc": "mesh_1", "ranks": "[0, 1, 2]"},
        "2": {"name": "2", "desc": "mesh_2", "ranks": "[2, 3]"},
    }
    first = pending("nccl:all_reduce", 5, process_group=("1", "mesh_1"))
    second = pending("nccl:broadcast", 9, process_group=("2", "mesh_2"), line=12)
    found = explained(
        tmp_path,
        {
            0: dump([first], pg_config=config),
            1: dump([first], pg_config=config),
            2: dump([second], pg_config=config),
            3: dump([entry("nccl:broadcast", 8, process_group=("2", "mesh_2"))], pg_config=config),
        },
    )
    assert found.culprits == [3]
    assert found.sentence.startswith("Rank 2 waits in broadcast at train.py:12; rank 3 has not called it")
    assert [group.name for group in found.groups] == ["mesh_2 (2)", "mesh_1 (1)"]
    assert "rank 2 has not called it: it waits in broadcast at train.py:12" in found.groups[1].sentence


def test_groups_that_wait_for_each_other(tmp_path: Path) -> None:
    config = {name: {"name": name, "desc": "", "ranks": "[0, 1]"} for name in ("1", "2")}
    calls = {
        0: pending("nccl:all_reduce", 5, process_group=("1", "")),
        1: pending("nccl:broadcast", 9, process_group=("2", ""), line=12),
    }
    found = explained(tmp_path, {rank: dump([call], pg_config=config) for rank, call in calls.items()})
    assert found.kind == "deadlock"
    assert "rank 0 waits in all_reduce at train.py:88 of group 1 for rank 1" in found.sentence
    assert "rank 1 waits in broadcast at train.py:12 of group 2 for rank 0" in found.sentence


def test_groups_of_one_name_with_other_ranks(tmp_path: Path) -> None:
    """A mesh names its pieces alike: ranks 0 and 1 do not wait for 2 and 3."""

    def piece(ranks: list[int], *calls: dict[str, Any]) -> dict[str, Any]:
        config = {"7": {"name": "7", "desc": "tp", "ranks": str(ranks)}}
        return dump([{**call, "process_group": ("7", "tp")} for call in calls], pg_config=config)

    done, waits = entry("nccl:all_reduce", 5), pending("nccl:all_reduce", 6)
    found = explained(
        tmp_path,
        {
            0: piece([0, 1], done, waits),
            1: piece([0, 1], done),
            2: piece([2, 3], done),
            3: piece([2, 3], done),
        },
    )
    assert found.culprits == [1]
    assert len(found.groups) == 1


def test_a_receive_without_a_send(tmp_path: Path) -> None:
    waits = pending("nccl:recv 1<-0", 1, is_p2p=True, p2p_seq_id=1)
    found = explained(tmp_path, {0: dump(usual(2), range(2)), 1: dump([waits], range(2))})
    assert found.culprits == [0]
    assert found.sentence.startswith("Rank 1 waits in recv at train.py:88; rank 0 has not called it")


def test_a_send_of_another_size(tmp_path: Path) -> None:
    sends = pending("nccl:send 0->1", 1, is_p2p=True, input_sizes=((8,),))
    receives = pending("nccl:recv 1<-0", 1, is_p2p=True, output_sizes=((4,),))
    found = explained(tmp_path, {0: dump([sends], range(2)), 1: dump([receives], range(2))})
    assert found.kind == "size"


def test_dumps_of_two_runs(tmp_path: Path) -> None:
    dumps = hang()
    old = [{**each, "time_created_ns": CREATED_NS - 10**12} for each in dumps[1]["entries"]]
    found = report_of(tmp_path, {**dumps, 1: dump(old)})
    assert "mixed-dumps" in [each.code for each in found.problems]


def test_one_dump_alone(tmp_path: Path) -> None:
    found = explained(tmp_path, {0: hang()[0]})
    assert found.kind == "dead"
    assert found.culprits == [1, 2, 3]


def test_many_ranks_are_few_rows(tmp_path: Path) -> None:
    others = dump([*usual(), pending("nccl:all_reduce", 5)], range(24))
    dumps = {rank: dump(usual(), range(24)) if rank == 17 else others for rank in range(24)}
    found = explained(tmp_path, dumps)
    assert found.sentence.startswith(
        "Ranks 0–16, 18–23 wait in all_reduce at train.py:88; rank 17 has not called it"
    )
    assert len(found.ranks) == 2


def test_dumps_have_no_steps_to_compare(tmp_path: Path) -> None:
    paths = [str(put_dumps(tmp_path / name, hang())) for name in ("a", "b")]
    with pytest.raises(StepscopeError, match="no steps to compare"):
        stepscope.diff(*paths)

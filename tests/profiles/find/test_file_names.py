"""What file names tell."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.profiles.find.file_names import (
    folder_time_ns,
    natural,
    pattern,
    read_folder,
    read_name,
    unix_ns,
)

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("name", "rank", "who", "template"),
    [
        ("worker0_step_12.1694128201545.pt.trace.json.gz", 0, (0,), "worker*_step_12.pt.trace.json"),
        ("ddp_rank0.pt.trace.json.gz", 0, (0,), "ddp_rank*.pt.trace.json"),
        ("trace_rank_00007.json", 7, (7,), "trace_rank_*.json"),
        ("rank0_trace.json", 0, (0,), "rank*_trace.json"),
        ("rank-12.json.gz", 12, (12,), "rank-*.json"),
        ("bs_8_rank3.json.gz", 3, (3,), "bs_8_rank*.json"),
        ("1759-TP-3.trace.json.gz", 3, (3,), "1759-TP-*.trace.json"),
        ("1759-TP-3-DP-1.trace.json.gz", None, (3, 1), "1759-TP-*-DP-*.trace.json"),
        ("gloo_rank34_cpu_only.pt.trace.json.gz", 34, (34,), "gloo_rank*_cpu_only.pt.trace.json"),
        ("node1_local_rank2.json", None, (1, 2), "node*_local_rank*.json"),
        ("node1_rank10.json", 10, (10,), "node1_rank*.json"),
        (
            "dp0_pp0_tp1_dcp0_ep1_rank1.1794699969123456789.pt.trace.json.gz",
            1,
            (0, 0, 1, 0, 1, 1),
            "dp*_pp*_tp*_dcp*_ep*_rank*.pt.trace.json",
        ),
        ("kineto_resnet50_workers4.pt.trace.json.gz", None, (), "kineto_resnet50_workers4.pt.trace.json"),
        ("llama_tp2.json", None, (), "llama_tp2.json"),
        ("rank.1694128201545.json", None, (), "rank.1694128201545.json"),
        ("crank3.json", None, (), "crank3.json"),
        ("trace.json", None, (), "trace.json"),
    ],
)
def test_rank_in_a_name(name: str, rank: int | None, who: tuple[int, ...], template: str) -> None:
    found = read_name(name)
    assert (found.rank, found.who, found.template) == (rank, who, template)


def test_worker_and_time_of_a_kineto_name() -> None:
    found = read_name("vm_1234.1794699969123456789.pt.trace.json")
    assert (found.worker, found.time_ns) == ("vm_1234", 1794699969123456789)
    assert read_name("a.b_1.pt.trace.json").worker == "a.b_1"


@pytest.mark.parametrize("digits", ["1694128201", "1694128201000", "1694128201000000", "1694128201000000000"])
def test_times_in_any_unit(digits: str) -> None:
    assert unix_ns(digits) == 1694128201 * SECOND


def test_other_numbers_are_no_times() -> None:
    assert unix_ns("12") is None
    assert unix_ns(None) is None


def test_folders_end_in_their_mark() -> None:
    assert read_folder("rank_3").rank == 3
    assert read_folder("run_worker4").template == "run_worker*"
    assert read_folder("rank3_old").rank is None
    assert read_folder("").template == ""


def test_time_of_a_run_folder() -> None:
    assert folder_time_ns("2026_11_14_23_49_41") == 1794700181 * SECOND
    assert folder_time_ns("2026_13_99_23_49_41") is None
    assert folder_time_ns("latest") is None


def test_natural_order() -> None:
    assert sorted(["rank10", "rank9", "rank", "10"], key=natural) == ["10", "rank", "rank9", "rank10"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["rank9.json", "rank10.json"], "rank*.json"),
        (["h_101.1700000000001.pt", "h_102.1700000000013.pt"], "h_10*.17000000000*.pt"),
        (["node-a.json", "node-bc.json"], "node-*.json"),
        (["x[1].json"], "x[[]1].json"),
    ],
)
def test_pattern(names: list[str], expected: str) -> None:
    assert pattern(names) == expected


@given(st.lists(st.text("ab01._[*", min_size=1, max_size=8), min_size=1, max_size=5))
def test_pattern_matches_what_it_was_made_of(names: list[str]) -> None:
    assert all(fnmatchcase(name, pattern(names)) for name in names)


@given(st.text(max_size=60))
def test_any_name_can_be_read(name: str) -> None:
    read_name(name)
    read_folder(name)
    natural(name)

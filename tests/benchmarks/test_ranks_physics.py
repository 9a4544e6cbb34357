"""The simulator of hybrid-parallel jobs: what it makes follows from arithmetic."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from benchmarks.ranks.physics.case import Case, random_case
from benchmarks.ranks.physics.conditions import Pause, usual
from benchmarks.ranks.physics.facts import facts
from benchmarks.ranks.physics.job import MOST_EVENTS, Job, events_per_step, random_job
from benchmarks.ranks.physics.layout import Layout
from benchmarks.ranks.physics.network import BASE_NS, CARD_BYTES_PER_NS, CARD_LATENCY_NS, Network
from benchmarks.ranks.physics.program import Call, Kernel, one_forward_one_backward
from benchmarks.ranks.physics.run import Run, simulate
from benchmarks.ranks.physics.score import Said, Verdict, said_by, shorten
from benchmarks.ranks.physics.trouble import DRAWS
from benchmarks.ranks.physics.work import Work
from benchmarks.ranks.physics.write import write_case

SMALL = Job(
    seed=5, layout=Layout(tp=2, pp=2, dp=4), micro_batches=4, steps=2, sync=True, host_share=0.2, noise=0.0,
    lasting=0.0, queue=256, work=Work(hidden=4096, sequence=4096, batch=1, layers=1, tp=2, fine=True),
)  # fmt: skip
ALONE = replace(SMALL, layout=Layout(tp=1, pp=1, dp=2), work=replace(SMALL.work, tp=1))


@cache
def healthy_run() -> Run:
    return simulate(SMALL, SMALL.conditions())


@cache
def small_case() -> Case:
    conditions = SMALL.conditions()
    conditions.tokens[1] = 1.5
    trouble = DRAWS["healthy"](Random(1), SMALL, 1.0)
    trouble = replace(trouble, broken=(SMALL, conditions))
    return Case(SMALL.seed, trouble, simulate(SMALL, conditions), 1.0, 1.0)


def test_the_same_seed_gives_the_same_job() -> None:
    first, second, other = (random_case(seed, "slow-device", 16) for seed in (11, 11, 12))
    assert first.truth() == second.truth() != other.truth()
    assert first.run.finished == second.run.finished


def test_files_of_the_same_seed_are_equal(tmp_path: Path) -> None:
    for name in "ab":
        write_case(small_case(), tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(files) == SMALL.layout.world + 1
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)


def test_a_collective_never_ends_before_its_last_arrival() -> None:
    meetings = [done.meeting for rank in healthy_run().done for done in rank if done.meeting is not None]
    assert meetings
    for meeting in meetings:
        assert min(meeting.ends.values()) > max(meeting.starts.values())
        assert meeting.starts.keys() == meeting.ends.keys()


def test_a_stream_runs_one_kernel_at_a_time_and_none_before_its_launch() -> None:
    for rank, done in enumerate(healthy_run().done):
        free: dict[int, float] = {}
        for each in done:
            if not isinstance(each.action, Kernel | Call):
                continue
            stream = each.action.stream if isinstance(each.action, Call) else 7
            assert each.device[0] >= max(free.get(stream, 0.0), each.launch[1])
            free[stream] = each.meeting.ends[rank] if each.meeting else each.device[1]


def test_the_host_waits_for_room_in_the_queue() -> None:
    ahead = replace(ALONE, sync=False, host_share=0.0)
    short = replace(ahead, queue=4)
    for job, held_up in ((ahead, False), (short, True)):
        done = simulate(job, job.conditions()).done[0]
        assert (max(each.launch[1] - each.launch[0] for each in done) > 100_000) == held_up


def test_a_slow_device_slows_the_job_by_what_it_computes_longer() -> None:
    """Data parallel alone: all wait for it, once a step, for all that it takes longer; links are not the limit."""
    job = replace(ALONE, micro_batches=2)
    fair, slow = job.conditions(), job.conditions()
    slow.device[1] *= 1.5
    kernels = [each for each in job.programs[1] if isinstance(each, Kernel)]
    computed = sum(kernel.part.ns for kernel in kernels)
    longer = simulate(job, slow).step_ns() - simulate(job, fair).step_ns()
    assert longer == pytest.approx(0.5 * computed, rel=0.03)


def test_a_step_without_trouble_takes_what_arithmetic_says() -> None:
    """Two stages and m micro-batches: m + 1 times what one takes, and collectives."""
    compute = 3 * SMALL.work.layer_ns * (SMALL.micro_batches + 1)
    assert compute < healthy_run().step_ns() < 1.6 * compute


@pytest.mark.parametrize("count", [1, 2, 4])
def test_fewer_micro_batches_make_the_bubble_longer(count: int) -> None:
    job = SMALL.with_micro_batches(count)
    step = simulate(job, job.conditions()).step_ns()
    assert step / healthy_run().step_ns() == pytest.approx((1 + 1 / count) / (1 + 1 / 4), rel=0.1)


def test_a_pause_delays_everyone() -> None:
    conditions = replace(SMALL.conditions(), pauses={(3, 2): (Pause(0.5, False, 2e7),)})
    longer = simulate(SMALL, conditions).step_ns() - healthy_run().step_ns()
    assert SMALL.steps * longer == pytest.approx(2e7, rel=0.05)


def test_schedule_is_one_forward_one_backward() -> None:
    assert list(one_forward_one_backward(1, 2, 2)) == [
        ("forward", 0), ("backward", 0), ("forward", 1), ("backward", 1),
    ]  # fmt: skip
    assert [what[0] for what, _ in one_forward_one_backward(0, 3, 4)] == list("fffbfbbb")


def test_transfers_take_latency_and_bytes_by_bandwidth() -> None:
    layout = Layout(tp=8, pp=1, dp=8)
    conditions = usual(64, 1, 8, 1, 1)
    ring, size = layout.groups["dp"][3].ranks, 1 << 30
    expected = BASE_NS + 14 * (CARD_LATENCY_NS + size / 8 / CARD_BYTES_PER_NS)
    assert Network(layout, conditions).transfer_ns("all_reduce", ring, size) == pytest.approx(expected)
    slow = replace(conditions, nics={ring[2]: 0.5})
    assert Network(layout, slow).speed(ring) == CARD_BYTES_PER_NS / 2
    assert Network(layout, slow).speed(layout.groups["dp"][4].ranks) == CARD_BYTES_PER_NS
    assert Network(layout, replace(conditions, pairs={(0, 7): 0.25})).speed(ring) == CARD_BYTES_PER_NS / 4


def test_groups_divide_the_ranks() -> None:
    layout = Layout(tp=2, pp=2, dp=8, ep=4)
    for role, by_rank in layout.groups.items():
        assert sorted(by_rank) == list(range(layout.world)), role
        assert all(rank in group.ranks for rank, group in by_rank.items())
    names = [group.name for by_rank in layout.groups.values() for group in {*by_rank.values()}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", DRAWS)
def test_jobs_stay_within_the_budget_of_events(kind: str) -> None:
    for seed in range(5):
        job = random_job(seed, kind, 64)
        assert job.layout.world == 64
        assert events_per_step(job) * job.steps <= 1.15 * MOST_EVENTS


def test_a_profile_is_what_torch_writes(tmp_path: Path) -> None:
    write_case(small_case(), tmp_path)
    path = sorted(tmp_path.glob("*.pt.trace.json.gz"))[3]
    document = json.loads(gzip.decompress(path.read_bytes()))
    info = document["distributedInfo"]
    assert (info["rank"], info["world_size"]) == (3, 16) and info["pg_config"][0]["ranks"] == list(range(16))
    events = document["traceEvents"]
    launches = {e["args"]["correlation"] for e in events if e.get("cat") == "cuda_runtime"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert kernels and all(kernel["args"]["correlation"] in launches for kernel in kernels)
    sends = [e for e in events if e["args"].get("Collective name") == "send" and e["cat"] == "cpu_op"]
    assert len(sends) == SMALL.steps * SMALL.micro_batches and sends[0]["args"]["Dst Rank"] == 11
    assert [e["name"] for e in events if e["name"].startswith("ProfilerStep")] == [
        "ProfilerStep#10", "ProfilerStep#11",
    ]  # fmt: skip


def test_a_sharded_optimizer_scatters_gradients_and_gathers_parameters() -> None:
    job = replace(SMALL, sharded=True)
    calls = {call.operation: call for call in job.programs[0] if isinstance(call, Call)}
    sizes = {
        name: (known["In msg nelems"], known["Out msg nelems"])
        for name in ("reduce_scatter", "all_gather")
        for known in [facts(small_case(), 0, calls[name], 1)]
    }
    whole = job.work.layer_parameters
    assert sizes["all_gather"] == (whole // 4, whole)
    assert sizes["reduce_scatter"][0] == pytest.approx(4 * sizes["reduce_scatter"][1], abs=2)
    assert simulate(job, job.conditions()).step_ns() == pytest.approx(healthy_run().step_ns(), rel=0.1)


def test_longer_batches_are_seen_in_the_size_of_messages() -> None:
    sizes = []
    for rank in (0, 2):
        calls = [call for call in SMALL.programs[rank] if isinstance(call, Call) and call.activations]
        sizes.append(facts(small_case(), rank, calls[0], 1)["In msg nelems"])
    assert sizes[1] == 1.5 * sizes[0]


def test_verdicts() -> None:
    truth = {"kind": "slow-device", "ranks": [7], "world": 64, "gain": 1.4}
    finding = {
        "code": "straggler", "title": "", "evidence": {"rank": 7, "ranks": [7], "cause": "compute"},
        "speedup": {"low": 1.2, "mid": 1.38, "high": 1.5},
    }  # fmt: skip
    said = said_by({"findings": [finding]})
    right = Verdict("case0", truth, said)
    assert right.first and right.any_place and right.ranks and right.gain
    second = Verdict("case0", truth, (Said("exposed-collective", (), 1, 1, 1, ""), *said))
    assert not second.first and second.any_place and second.ranks and second.gain
    assert not Verdict("case0", truth, (Said("straggler", (7,), 1.02, 1.1, 1.2, ""),)).gain
    silent = Verdict("case0", truth, ())
    assert not (silent.first or silent.any_place or silent.ranks or silent.gain)
    healthy = truth | {"kind": "healthy", "ranks": []}
    assert Verdict("case0", healthy, ()).first and not Verdict("case0", healthy, said).first
    assert Verdict("case0", truth | {"ranks": [6]}, said).ranks is False


def test_ranks_are_shortened() -> None:
    assert shorten([0, 1, 2, 7, 9, 10]) == "0–2, 7, 9–10"

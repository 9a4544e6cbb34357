"""Which files are one run."""

from __future__ import annotations

from stepscope.profiles.find.runs import Run, entry, group, name_runs

SECOND = 1_000_000_000
NOW = 1_794_699_969 * SECOND


def runs(*paths: str, root: str = "/logs") -> list[list[str]]:
    """The files of each run, the newest first."""
    return [
        [item.path.removeprefix(root + "/") for item in run]
        for run in group(entry(path) for path in _full(paths, root))
    ]


def named(*paths: str, root: str = "/logs") -> list[Run]:
    return name_runs(group(entry(path) for path in _full(paths, root)), root, saw_whole_folders=True)


def _full(paths: tuple[str, ...], root: str) -> list[str]:
    return [f"{root}/{path}" for path in paths]


def at(worker: str, seconds: float) -> str:
    return f"{worker}.{NOW + int(seconds * SECOND)}.pt.trace.json"


def test_ranks_by_name_are_one_run_in_order() -> None:
    assert runs("trace_rank_10.json", "trace_rank_9.json") == [["trace_rank_9.json", "trace_rank_10.json"]]


def test_unrelated_files_are_runs_of_their_own() -> None:
    found = runs(
        "resnet.pt.trace.json.gz", "ddp_rank1.pt.trace.json.gz", "ddp_rank0.pt.trace.json.gz", "gpt.json"
    )
    assert sorted(found) == [
        ["ddp_rank0.pt.trace.json.gz", "ddp_rank1.pt.trace.json.gz"],
        ["gpt.json"],
        ["resnet.pt.trace.json.gz"],
    ]


def test_rank_folders() -> None:
    assert runs("rank_0/trace.json", "rank_1/trace.json") == [["rank_0/trace.json", "rank_1/trace.json"]]
    assert [item.rank for item in group([entry("/l/rank_0/t.json"), entry("/l/rank_1/t.json")])[0]] == [0, 1]


def test_iterations_in_folders_are_different_runs() -> None:
    assert runs("iteration_10/rank0_trace.json", "iteration_20/rank0_trace.json") == [
        ["iteration_10/rank0_trace.json"],
        ["iteration_20/rank0_trace.json"],
    ]


def test_batch_sizes_are_different_runs() -> None:
    assert sorted(runs("bs_1_rank0.json.gz", "bs_1_rank1.json.gz", "bs_8_rank0.json.gz")) == [
        ["bs_1_rank0.json.gz", "bs_1_rank1.json.gz"],
        ["bs_8_rank0.json.gz"],
    ]


def test_vllm_ranks_share_a_run() -> None:
    files = [at("dp0_pp0_tp0_dcp0_ep0_rank0", 0), at("dp0_pp0_tp1_dcp0_ep1_rank1", 0.2)]
    assert runs(*files) == [files]


def test_hosts_in_a_profile_folder_are_one_run() -> None:
    folder = "plugins/profile/2026_11_14_23_49_41"
    assert runs(
        f"{folder}/b.xplane.pb", f"{folder}/a.xplane.pb", "plugins/profile/2026_11_14_23_49_42/a.xplane.pb"
    ) == [
        ["plugins/profile/2026_11_14_23_49_42/a.xplane.pb"],
        [f"{folder}/a.xplane.pb", f"{folder}/b.xplane.pb"],
    ]


def test_workers_at_the_same_time_are_one_run() -> None:
    files = [at("node1_100", 0), at("node1_101", 1.5), at("node2_77", 2)]
    assert runs(*files) == [files]


def test_jobs_started_one_after_the_other_are_different_runs() -> None:
    assert runs(at("vm_100", 0), at("vm_200", 60)) == [[at("vm_200", 60)], [at("vm_100", 0)]]


def test_the_same_worker_again_is_another_window() -> None:
    found = runs(at("vm_1", 0), at("vm_2", 0.1), at("vm_1", 5), at("vm_2", 5.1))
    assert found == [[at("vm_1", 5), at("vm_2", 5.1)], [at("vm_1", 0), at("vm_2", 0.1)]]


def test_windows_closer_than_the_clocks_agree() -> None:
    found = runs(at("vm_1", 0), at("vm_1", 2), at("vm_2", 3), at("vm_2", 5))
    assert found == [[at("vm_1", 2), at("vm_2", 5)], [at("vm_1", 0), at("vm_2", 3)]]


def test_a_worker_that_missed_a_window() -> None:
    found = runs(at("vm_1", 0), at("vm_1", 5), at("vm_2", 5.1))
    assert found == [[at("vm_1", 5), at("vm_2", 5.1)], [at("vm_1", 0)]]


def test_cycles_of_one_worker() -> None:
    assert runs(at("vm_1", 0), at("vm_1", 5), at("vm_1", 500)) == [
        [at("vm_1", 500)],
        [at("vm_1", 5)],
        [at("vm_1", 0)],
    ]


def test_late_ranks_of_a_named_step_stay_together() -> None:
    files = [
        at("worker0_step_12", 0),
        at("worker1_step_12", 40),
        at("worker0_step_13", 30),
        at("worker1_step_13", 70),
    ]
    assert runs(*files) == [[files[2], files[3]], [files[0], files[1]]]


def test_addresses() -> None:
    found = {
        run.name: run.address
        for run in named("alone.json", "r/rank0.json", "r/rank1.json", "d_rank0.json", "d_rank1.json")
    }
    assert found == {"alone.json": "/logs/alone.json", "r": "/logs/r", "d_rank*.json": "/logs/d_rank*.json"}


def test_address_of_a_profile_folder() -> None:
    assert [run.address for run in named("plugins/profile/2026_11_14_23_49_41/vm.xplane.pb")] == [
        "/logs/plugins/profile/2026_11_14_23_49_41"
    ]


def test_no_address_where_a_pattern_would_match_another_window() -> None:
    found = named(at("vm_1", 0), at("vm_2", 1), at("vm_1", 5), at("vm_2", 6), at("vm_1", 9.5))
    assert [run.address is None for run in found if len(run.entries) == 2].count(True) >= 1
    assert len({run.name for run in found}) == len(found)


def test_a_folder_is_no_address_while_folders_below_hold_other_runs() -> None:
    found = named("rank0.json", "rank1.json", "old/x.json")
    assert {run.address for run in found} == {"/logs/rank*.json", "/logs/old/x.json"}


def test_copies_of_a_few_ranks_are_not_the_run() -> None:
    ranks = [f"rank{rank}.json" for rank in range(4)]
    copied = [entry(f"/logs/{name}") for name in ranks] + [
        entry("/logs/copy_rank3.json", mtime_ns=1_000_000_000)
    ]
    assert [[item.name for item in run] for run in group(copied)] == [ranks, ["copy_rank3.json"]]


def test_a_second_window_of_one_worker_is_not_the_run() -> None:
    workers = [at(f"vm_{worker}", 1000 + worker) for worker in range(4)]
    again = at("vm_3", 1010)
    assert runs(*workers, again) == [workers, [again]]

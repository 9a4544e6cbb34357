"""Which rank each trace is."""

from __future__ import annotations

from stepscope.profiles.find.runs import entry
from stepscope.profiles.ranks import LoadedFile, assign, missing_ranks, spans, without_doubles
from stepscope.trace.trace import Trace, TraceInfo


def loaded(path: str, rank: int | None = None, world_size: int | None = None) -> LoadedFile:
    info = TraceInfo(path=path, rank=rank, world_size=world_size)
    return LoadedFile(entry(path), Trace({"traces": info.frame()}))


def assigned(*files: LoadedFile) -> tuple[dict[int, str], list[str]]:
    ranked, problems = assign(files)
    return {rank: trace.info.path for rank, trace in ranked}, [problem.detail for problem in problems]


def test_the_trace_knows_better_than_its_name() -> None:
    assert assigned(loaded("rank1.json", 5), loaded("rank2.json", 4)) == (
        {4: "rank2.json", 5: "rank1.json"},
        [],
    )


def test_the_name_where_the_trace_is_silent() -> None:
    assert assigned(loaded("rank7.json"), loaded("rank_9/t.json")) == (
        {7: "rank7.json", 9: "rank_9/t.json"},
        [],
    )


def test_the_order_where_nothing_tells() -> None:
    assert assigned(loaded("a.xplane.pb"), loaded("b.xplane.pb")) == (
        {0: "a.xplane.pb", 1: "b.xplane.pb"},
        [],
    )


def test_a_single_trace() -> None:
    assert assigned(loaded("x.json")) == ({0: "x.json"}, [])
    assert assigned(loaded("x.json", 34)) == ({34: "x.json"}, [])


def test_free_numbers_for_the_silent() -> None:
    assert assigned(loaded("a.json"), loaded("b.json", 0)) == ({0: "b.json", 1: "a.json"}, [])


def test_names_decide_between_traces_that_say_the_same() -> None:
    found, problems = assigned(loaded("rank0.json", 0), loaded("rank1.json", 0))
    assert found == {0: "rank0.json", 1: "rank1.json"}
    assert problems == ["rank0.json and rank1.json are all rank 0. The ranks in the file names were used."]


def test_the_first_keeps_a_rank_that_names_do_not_settle() -> None:
    found, problems = assigned(loaded("a.json", 0), loaded("b.json", 0), loaded("c.json", 1))
    assert found == {0: "a.json", 1: "c.json", 2: "b.json"}
    assert problems == ["a.json and b.json are all rank 0. All but the first got other numbers."]


def test_of_two_files_of_one_rank_of_a_known_job_one_is_taken() -> None:
    files = [loaded("a.json", 0, 2), loaded("b.json", 0, 2), loaded("c.json", 1, 2)]
    kept, left, problem = without_doubles(files)
    assert [file.entry.path for file in kept] == ["a.json", "c.json"]
    assert [(file.entry.path, why) for file, why in left] == [("b.json", "rank 0 is a.json already")]
    assert problem is not None
    assert problem.detail == "a.json and b.json are all rank 0. Only the first was taken."


def test_ranks_that_were_told_wrong_are_kept() -> None:
    all_say_zero = [loaded("a.json", 0, 2), loaded("b.json", 0, 2)]
    named = [loaded("rank0.json", 0, 3), loaded("rank1.json", 0, 3), loaded("rank2.json", 1, 3)]
    strangers = [loaded("a.json", 0), loaded("b.json", 0), loaded("c.json", 1)]
    for files in (all_say_zero, named, strangers):
        assert without_doubles(files) == (files, [], None)


def test_missing_ranks() -> None:
    ranked, _ = assign([loaded("a.json", 34, 300)])
    problem = missing_ranks(ranked, was_chosen=True)
    assert problem is not None
    assert (problem.code, problem.severity, problem.count) == ("missing-ranks", "info", 299)
    assert problem.detail == "1 of 300 ranks; missing: 0–33, 35–299."
    worse = missing_ranks(ranked, was_chosen=False)
    assert worse is not None
    assert worse.severity == "warning"


def test_no_rank_is_missing() -> None:
    ranked, _ = assign([loaded("a.json", 0, 2), loaded("b.json", 1, 2)])
    assert missing_ranks(ranked, was_chosen=False) is None


def test_spans() -> None:
    assert spans([]) == ""
    assert spans([3]) == "3"
    assert spans([0, 1, 2, 5, 7, 8]) == "0–2, 5, 7–8"
    assert spans(range(0, 40, 2), most=2) == "0, 2 …"

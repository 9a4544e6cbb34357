"""Steps in which a DataLoader starts its workers again."""

from __future__ import annotations

from stepscope.analysis.steps.loader_starts import LoaderStarts, find_loader_starts
from tests.builders.cases import case_of_text, gemm, step

LOADER = "torch/utils/data/dataloader.py"
STOP = f"main  0  100  {LOADER}(1625): _shutdown_workers  python  -"
START = (
    f"main  100  300  {LOADER}(428): _get_iterator  python  -",
    "main  110  100  lib/python3.12/multiprocessing/process.py(110): start  python  -",
    "main  220  100  lib/python3.12/multiprocessing/process.py(110): start  python  -",
    f"main  400  50  {LOADER}(1452): _get_data  python  -",
)
OTHER_START = (
    "main  100  300  train.py(3): spawn  python  -",
    "main  110  100  multiprocessing/process.py(110): start  python  -",
)


def starts_of(*each: tuple[str, ...]) -> LoaderStarts | None:
    lines = [
        row
        for number, parts in enumerate(each)
        for row in step(number, 1000 * number, *parts, *gemm(500, 400))
    ]
    return find_loader_starts(case_of_text(lines).trace)


def test_workers_that_follow_others() -> None:
    assert starts_of((), (STOP, *START), ()) == LoaderStarts((1,), 2, 50_000)


def test_workers_that_start_twice() -> None:
    assert starts_of(START, (), START) == LoaderStarts((0, 2), 2, 50_000)


def test_a_single_start_may_be_the_only_one() -> None:
    assert starts_of(START, (), ()) is None


def test_processes_of_others_are_not_the_loaders() -> None:
    assert starts_of(OTHER_START, (STOP,), OTHER_START) is None

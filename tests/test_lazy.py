"""Dataclasses that are finished when first used."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Generic, TypeVar

import pytest

from stepscope.lazy import dataclass

T = TypeVar("T")

# Prints which dataclasses of the analysis were finished although nothing was made of them.
COUNT = """
import dataclasses
finished = []
finish = dataclasses.dataclass
def note(cls=None, /, **options):
    if cls is not None:
        finished.append(cls.__qualname__)
    return finish(cls, **options)
dataclasses.dataclass = note
import stepscope.analysis.context
print(len(finished))
"""


@dataclass(frozen=True)
class Base:
    """Has a default that is made."""

    first: int
    rest: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Derived(Base):
    """One field more."""

    last: int = 3


@dataclass
class Holder(Generic[T]):
    """Generic, and with something to do at its end."""

    value: T

    def __post_init__(self) -> None:
        self.is_ready = True


def test_first_instance_finishes_class_and_bases() -> None:
    assert Derived(1, last=5) == Derived(first=1, rest=[], last=5)
    assert repr(Base(2)) == "Base(first=2, rest=[])"
    assert Holder("a").is_ready


def test_finished_class_is_a_dataclass() -> None:
    assert [each.name for each in dataclasses.fields(Derived)] == ["first", "rest", "last"]
    assert dataclasses.replace(Derived(1), last=9).last == 9
    assert pickle.loads(pickle.dumps(Base(4))) == Base(4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Base(1).first = 2  # type: ignore[misc]


def test_mistakes_are_those_of_a_dataclass() -> None:
    with pytest.raises(TypeError, match="first"):
        Base()  # type: ignore[call-arg]


def test_asking_for_fields_finishes() -> None:
    @dataclass
    class Local:
        value: int = 1

    assert dataclasses.is_dataclass(Local)
    assert [each.name for each in dataclasses.fields(Local)] == ["value"]


def test_signature_is_that_of_init() -> None:
    assert list(inspect.signature(Derived).parameters) == ["first", "rest", "last"]


def test_plain_dataclass_of_unfinished_base() -> None:
    @dataclass
    class Lower:
        value: int

    @dataclasses.dataclass
    class Upper(Lower):
        other: int = 2

    assert Upper(1) == Upper(value=1, other=2)


def test_threads_that_meet_at_an_unfinished_class() -> None:
    for _ in range(20):

        @dataclass(frozen=True)
        class Met:
            value: int

        with ThreadPoolExecutor(8) as pool:
            assert [each.value for each in pool.map(Met, range(32))] == list(range(32))


def test_slots_are_made_at_once() -> None:
    @dataclass(slots=True)
    class Narrow:
        value: int

    assert Narrow(1).value == 1
    assert not hasattr(Narrow(1), "__dict__")


def test_import_finishes_few_classes() -> None:
    found = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 40  # those of Polars, and values that registers hold

"""Dataclasses that are finished when first used."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from stepscope.lazy import dataclass, pattern

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


def shapes(decorate: Callable[..., Any]) -> list[type]:
    """Classes of all kinds, made by this decorator."""

    @decorate
    class Open:
        """With defaults of all kinds, and what is left out of comparisons."""

        first: int
        made: list[int] = field(default_factory=list)
        noted: str = field(default="-", compare=False, repr=False)
        kept: int = field(init=False, default=7)
        filled: list[int] = field(init=False, default_factory=list)

    @decorate(frozen=True)
    class Closed:
        """One field."""

        first: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", self.first + 1)

    @decorate(frozen=True)
    class Empty:
        """No field; a method and a constant of the class."""

        count: ClassVar[int] = 3

    @decorate(frozen=True, kw_only=True)
    class Named:
        """Only by name, one of them unlucky."""

        self: int
        other: tuple[int, ...] = ()

    @decorate(frozen=True)
    class Own:
        """Compares itself."""

        first: int
        second: int = field(default=2, hash=False)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

        def __repr__(self) -> str:
            return "own"

    @decorate(order=True)
    class Ordered:
        """Left to dataclasses."""

        first: int

    @decorate(frozen=True)
    class Below(Closed):
        """Inherits."""

        second: int = 5

    return [Open, Closed, Empty, Named, Own, Ordered, Below]


def outcome(call: Callable[[], object]) -> object:
    """What it returns, or how it fails."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def behaviour(cls: type) -> dict[str, object]:
    """All that a dataclass does."""
    make = (
        partial(cls, self=1)
        if "Named" in cls.__name__
        else cls
        if "Empty" in cls.__name__
        else partial(cls, 1)
    )
    one, two = make(), make()
    parameters = cls.__dataclass_params__  # type: ignore[attr-defined]
    return {
        "signature": str(inspect.signature(cls)),
        "repr": repr(one),
        "values": vars(one),
        "equal": (one == two, one != two, one == 3, one.__eq__(3)),
        "hash": outcome(lambda: hash(one)),
        "set": outcome(lambda: setattr(two, "first", 8)),
        "set another": outcome(lambda: setattr(two, "another", 8)),
        "delete": outcome(lambda: delattr(make(), "first")),
        "after": (repr(two), one == two),
        "less": outcome(lambda: one < two),
        "absent": outcome(lambda: cls(no_such=1)),
        "many": outcome(lambda: cls(1, 2, 3, 4, 5, 6)),
        "fields": [(each.name, each.type, each.kw_only) for each in dataclasses.fields(cls)],
        "match": cls.__match_args__,  # type: ignore[attr-defined]
        "parameters": (parameters.frozen, parameters.eq, parameters.repr, parameters.init, parameters.order),
        "replaced": outcome(lambda: repr(dataclasses.replace(one, first=4))),
        "own subclass": outcome(
            lambda: setattr(type("Sub", (cls,), {})(*([1] * (cls.__name__ != "Empty"))), "x", 1)
        ),
    }


@pytest.mark.parametrize(
    ("ours", "theirs"),
    list(zip(shapes(dataclass), shapes(dataclasses.dataclass), strict=True)),
    ids=lambda cls: cls.__name__,
)
def test_does_what_a_dataclass_does(ours: type, theirs: type) -> None:
    assert behaviour(ours) == behaviour(theirs)


def test_repr_of_what_holds_itself() -> None:
    held = Holder([0])
    held.value.append(held)  # type: ignore[arg-type]
    assert repr(held) == "Holder(value=[0, ...])"


def test_pattern_is_compiled_when_used() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.search("a")
    found = pattern(r"(a+)b", re.IGNORECASE)
    for _ in range(2):
        match = found.search("xAAb")
        assert match is not None
        assert match[1] == "AA"
    assert (found.sub("-", "abab"), found.pattern, found.fullmatch("ba")) == ("--", r"(a+)b", None)
    assert pattern(rb"\d+").findall(b"1 23") == [b"1", b"23"]


def test_slots_are_made_at_once() -> None:
    @dataclass(slots=True)
    class Narrow:
        value: int

    assert Narrow(1).value == 1
    assert not hasattr(Narrow(1), "__dict__")


def test_import_finishes_few_classes() -> None:
    found = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 40  # those of Polars, and values that registers hold

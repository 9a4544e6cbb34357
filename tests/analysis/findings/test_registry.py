"""Every rule is complete, has a turn of its own, and can be asked alone."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from stepscope import plugins
from stepscope.analysis.findings import registry, rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import CLASSES, Finding
from stepscope.analysis.findings.registry import built_in_rules
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.input_bound import RULE as INPUT_BOUND
from stepscope.analysis.findings.rules.host.launch_bound import RULE as LAUNCH_BOUND
from stepscope.analysis.findings.situations import _FP16_ONLY, _INFERENCE, _TPU
from tests.builders.cases import case_of_text, gemm, steps

LOAD = "main  0  700  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
VERBS = re.compile(
    "Annotate|Apply|Call|Choose|Compile|Compute|Convert|Copy|Differentiate|Do|Drop|End|Find|Give|Hide|Keep|Launch|Leave|Let|Load|Look|"
    "Make|Move|Overlap|Pad|Pass|Prepare|Put|Raise|Read|Record|Replace|Run|Say|Select|Send|Set|Stack|Stop|Switch|Take|Update|Use|Wrap|Write"
)
FOLDER = Path(next(iter(rules.__path__)))


@pytest.fixture(autouse=True)
def _nothing_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_warned", set())


def test_every_file_of_the_folder_is_a_rule() -> None:
    files = {path.stem for path in FOLDER.rglob("*.py")} - {"__init__"}
    assert {rule.code.replace("-", "_") for rule in built_in_rules()} == files


def test_advice_begins_with_what_to_do() -> None:
    """The first screen quotes its first clause. A condition, a name or a reason says nothing there."""
    situations = (_INFERENCE, _FP16_ONLY, _TPU)
    rows = [row for rule in built_in_rules() for row in (rule.fix, rule.fix_without_device or {})]
    rows += [row for situation in situations for row in situation.values()]
    first = {text.split()[0].strip(",:") for row in rows for text in row.values()}
    assert {word for word in first if not VERBS.fullmatch(word)} == set()


@pytest.mark.parametrize("has_device", [True, False])
def test_every_rule_has_a_turn_of_its_own(has_device: bool) -> None:
    turns = [rule.turn_for(has_device) for rule in built_in_rules()]
    assert len(turns) == len(set(turns))
    assert not has_device or turns == sorted(turns)


def test_on_a_host_alone_special_rules_come_before_that_of_one_op() -> None:
    codes = [rule.code for rule in registry.rules_for(case_of_text(steps("main  10  900  aten::mm  op  -")))]
    assert codes.index("useless-backward") < codes.index("host-python")
    codes = [rule.code for rule in registry.rules_for(case_of_text(steps(*gemm(10, 900))))]
    assert codes.index("host-python") < codes.index("useless-backward")


@pytest.mark.parametrize("rule", built_in_rules(), ids=lambda rule: rule.code)
def test_every_rule_is_complete(rule: Rule[Case]) -> None:
    assert rule.class_ in CLASSES
    assert rule.fix[ANY].endswith((".", "cache")), "a sentence"
    assert set(rule.fix) | set(rule.fix_without_device) <= {ANY, "pytorch", "tensorflow", "jax"}
    assert rule.owns
    assert not rule.title.endswith(".")


@pytest.fixture(scope="module")
def busy() -> Case:
    """A device that always works: no rule owns any of its time, so all of them may look at the same case."""
    return case_of_text(steps(*gemm(0, 985)))


@pytest.mark.parametrize("rule", built_in_rules(), ids=lambda rule: rule.code)
def test_every_rule_is_calm_about_a_busy_device(busy: Case, rule: Rule[Case]) -> None:
    before = len(busy.unclaimed)
    assert not rule.find(busy)
    assert len(busy.unclaimed) == before > 0


def test_a_rule_alone() -> None:
    case = case_of_text(steps(LOAD, *gemm(700, 285)))
    (found,) = INPUT_BOUND.findings(case)
    assert (found.code, found.page) == ("input-bound", "input")
    assert found.fix.split(". ")[0] == INPUT_BOUND.fix["pytorch"].split(". ")[0]
    assert INPUT_BOUND.find(case) is None, "the time is owned already"


def test_texts_without_a_device() -> None:
    assert LAUNCH_BOUND.fix_for("other", has_device=False) == LAUNCH_BOUND.fix_without_device[ANY]
    assert LAUNCH_BOUND.fix_for("pytorch", has_device=False).startswith("Do more in each op")
    assert LAUNCH_BOUND.fix_for(None).startswith("Launch less")
    assert INPUT_BOUND.title_for(has_device=False) == "The step waits for data"


def guarded(rule: Rule[Case], monkeypatch: pytest.MonkeyPatch) -> Rule[Case]:
    """The rule as if a plug-in offered it."""
    monkeypatch.setattr(registry, "load_plugins", lambda *_: [("mine", rule)])
    found = registry.find_rules.__wrapped__()
    return next(each for each in found if each.code == rule.code)


def a_rule(find: object) -> Rule[Case]:
    return Rule("mine", "t", 1, "", "", {ANY: "f"}, find)  # type: ignore[arg-type]


def raise_after_claiming(case: Case) -> Finding:
    case.claim(case.unclaimed)
    raise ValueError("no luck")


def test_a_rule_of_a_plugin_that_fails_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = guarded(a_rule(raise_after_claiming), monkeypatch)
    case = case_of_text(steps(LOAD, *gemm(700, 285)))
    with pytest.warns(UserWarning, match="The plug-in mine does not work: ValueError: no luck"):
        assert rule.find(case) is None
    assert INPUT_BOUND.find(case) is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rule.find(case)  # said once


def test_a_rule_of_a_plugin_in_which_polars_panics(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(_: Case) -> Finding:
        raise type("PanicException", (BaseException,), {})("oh")

    rule = guarded(a_rule(panic), monkeypatch)
    with pytest.warns(UserWarning, match="PanicException: oh"):
        assert rule.find(case_of_text(steps(*gemm(0, 985)))) is None


def test_a_rule_of_a_plugin_makes_findings_of_its_own_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = guarded(
        a_rule(lambda case: Finding(code="straggler", class_="time", title="", detail="")), monkeypatch
    )
    with pytest.warns(UserWarning, match="something else than findings of its own"):
        assert rule.find(case_of_text(steps(*gemm(0, 985)))) is None

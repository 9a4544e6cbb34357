"""All rules in their turn: every `RULE` in the folder rules/, and those of plug-ins."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from stepscope.analysis.findings import rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import CLASSES, Finding
from stepscope.analysis.findings.rule import ANY, RESERVED, Found, Rule
from stepscope.analysis.findings.spare import remember
from stepscope.errors import StepscopeError, is_fault
from stepscope.plugins import FINDINGS, load_plugins, warn, warn_of_fault


def rules_for(case: Case) -> list[Rule[Case]]:
    """The rules in their turn for this rank, which has a device or only its host."""
    has_device = case.device is not None
    asked = [rule for rule in find_rules() if has_device or not rule.needs_device]
    return sorted(asked, key=lambda rule: (rule.turn_for(has_device), rule.code))


@cache
def find_rules() -> tuple[Rule[Case], ...]:
    """The rules about one rank, in their turn."""
    own = built_in_rules()
    taken = {*(rule.code for rule in own), *RESERVED}
    offered = load_plugins(FINDINGS, Rule, lambda rule: rule.code, taken)
    others = [_guard(plugin, rule) for plugin, rule in offered if _is_complete(plugin, rule)]
    return tuple(sorted((*own, *others), key=_turn))


@cache
def built_in_rules() -> tuple[Rule[Case], ...]:
    """Those of stepscope itself, in their turn."""
    modules = walk_packages(rules.__path__, f"{rules.__name__}.")
    found: list[Rule[Case]] = [import_module(module.name).RULE for module in modules if not module.ispkg]
    return tuple(sorted(found, key=_turn))


def _turn(rule: Rule[Case]) -> tuple[int, str]:
    return rule.turn, rule.code


def _is_complete(plugin: str, rule: Rule[Case]) -> bool:
    if rule.class_ in CLASSES and ANY in rule.fix:
        return True
    warn(plugin, f'{rule.code} needs a class of {", ".join(CLASSES)} and a fix for "{ANY}" framework')
    return False


def _guard(plugin: str, rule: Rule[Case]) -> Rule[Case]:
    """The rule of a plug-in, whose faults cost its own finding only."""

    def find(case: Case) -> Found:
        take_back = remember(case)
        try:
            found = rule.findings(case)
            if all(isinstance(each, Finding) and each.code == rule.code for each in found):
                return found
            warn(plugin, f"the rule {rule.code} returned something else than findings of its own")
        except BaseException as error:
            if not (is_fault(error) or isinstance(error, StepscopeError)):
                raise
            warn_of_fault(plugin, error)
        take_back()  # time that a failed rule claimed belongs to the next ones
        return None

    return replace(rule, find=find)

"""The report on one screen: the sentence, the account as bars, the first findings, what is not known, commands for more."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from rich.text import Text

from stepscope import units
from stepscope.names import cut_middle, name_place, short_name
from stepscope.registers.policy.tables import (
    ACCOUNT_ROW_SHARE,
    ACCOUNT_ROWS_LEAST,
    FINDINGS_FIRST,
    HANG_ROWS,
    REPORT_LINES,
    REPORT_WIDTH,
)
from stepscope.reports.model.report import BreakdownRow, Finding, Problem, Report
from stepscope.reports.render.brief_memory import memory_lines
from stepscope.reports.render.terminal import drawn as draw_table
from stepscope.reports.render.text_grid import GAP, INDENT, bar, fold, lines
from stepscope.reports.tables.tables import tables_of
from stepscope.reports.wording.headline import about_line, is_of_dumps
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.sentence import opening
from stepscope.reports.wording.summary import (
    basis,
    in_order,
    longest_names,
    own_steps,
    placed,
    sampled,
    speedup,
    together,
)
from stepscope.reports.wording.unknown import what_is_unknown
from stepscope.reports.wording.values import share
from stepscope.safe import safe

_STYLES = {"error": "bold red", "warning": "yellow"}
_BETWEEN = " · "
_BAR = 14
_NAME_LEAST = 12
_PLACE_LEAST = 14
_PLACE_ROOM = 40
_PROBLEMS = 2
_STEP_MARKER = "ProfilerStep#"  # no place in the program
_FOLDER = re.compile(r" \([^()]*/(?=[^/()]+:\d+\)$)")  # of a place in parentheses
_WAIT = re.compile(
    r"(?i)synchroni[sz]e|\b(acquire|wait|join|poll|select|recv\w*|_get_data|_try_get_data|block_until_ready)\b"
)


def as_brief(report: Report, *, width: int = REPORT_WIDTH) -> str:
    """The short report without colours."""
    return "".join(f"{line.plain.rstrip()}\n" for line in brief_lines(report, width))


def brief_lines(report: Report, width: int = REPORT_WIDTH, path: str | None = None) -> list[Text]:
    """At most 25 lines: the account sums up in its last row what there is no room for, then findings are left out."""
    top = [*_title(report, width), *_wrapped(opening(report), width), *_problems(report, width)]
    top += _hang(report, width)
    end = [*_unknown(report, width), *_commands(path or report.profile.path, width)]
    for most in range(FINDINGS_FIRST, 0, -1):
        found = _findings(report, width, most, 1)
        room = REPORT_LINES - len(top) - len(end) - len(found)
        account = _account(report, width, max(ACCOUNT_ROWS_LEAST, room - 2))
        if len(account) <= room:
            break
    spare = room - len(account)
    if spare > 0 and found:
        found = _findings(report, width, most, 1 + spare // min(most, len(report.findings)))
    return [*top, *account, *found, *end]


def _title(report: Report, width: int) -> Iterator[Text]:
    """The name and what was profiled, on one line if both fit."""
    name, about = safe(report.profile.name or report.profile.path), safe(about_line(report))
    if len(name) + len(about) + 2 <= width:
        yield Text.assemble((name, "bold"), (f"  {about}", "dim"))
        return
    yield Text(cut_middle(name, width), style="bold")
    yield Text(cut_middle(about, width), style="dim")


def _wrapped(text: str, width: int) -> Iterator[Text]:
    yield from map(Text, fold(safe(text), width))


def _problems(report: Report, width: int) -> Iterator[Text]:
    """Errors and warnings by their titles, with what to do where the sentence has the title; --section problems has the rest."""
    serious = [problem for problem in report.problems if problem.severity in _STYLES]
    for number, problem in enumerate(serious[:_PROBLEMS]):
        left = len(serious) - _PROBLEMS if number == _PROBLEMS - 1 else 0
        more = f"; {left} more: --section problems" if left > 0 else ""
        label = f"{problem.severity}: "
        words = _cut_end(safe(_problem_words(problem, report.sentence)), width - len(label) - len(more))
        yield Text.assemble((label, _STYLES[problem.severity]), words, (more, "dim"))


def _cut_end(text: str, width: int) -> str:
    """At the end of a word, if there is one."""
    return text if len(text) <= width else f"{text[: width - 2].rpartition(' ')[0] or text[: width - 2]} …"


def _problem_words(problem: Problem, said: str) -> str:
    if problem.fix and (problem.title in said or problem.detail == said):
        return f"{problem.title}. {problem.fix}"
    rank = f" (rank {problem.rank})" if problem.rank is not None else ""
    return f"{problem.title}{rank}"


def _heading(title: str, detail: str, width: int) -> Iterator[Text]:
    yield Text()
    room = width - len(title) - 2
    yield Text.assemble((title, "bold"), (f"  {cut_middle(safe(detail), room)}" if detail else "", "dim"))


def _hang(report: Report, width: int) -> list[Text]:
    """Where the ranks are, those alike together."""
    places = next(iter(tables_of(report, "hang")), None)
    if places is None or not is_of_dumps(report):
        return []
    return [*_heading("where the ranks are", "", width), *draw_table(places.head(HANG_ROWS), width)]


def _account(report: Report, width: int, most: int) -> list[Text]:
    if report.memory.snapshot:
        return memory_lines(report, width, most)
    if not report.breakdown:
        return []
    steps = own_steps(report)
    ops = {row.name: row.op for row in reversed(report.kernels.rows) if row.op}
    shown, rest = _worth_a_row(in_order(report.breakdown), most)
    cells = [
        _figures(part(row.part).title, row.share, row.ns / steps, part(row.part).terminal) for row in shown
    ]
    if rest:
        cells.append(
            _figures("others", sum(row.share for row in rest), sum(row.ns for row in rest) / steps, "")
        )
    room = width - INDENT - sum(max(row[i].cell_len for row in cells) + GAP for i in range(len(cells[0])))
    names = [_names(row, ops, room) for row in shown]
    names += [", ".join(part(row.part).title for row in rest)] if rest else []
    rows = [[*figures, Text(name, "dim")] for figures, name in zip(cells, names, strict=True)]
    drawn = lines(rows, [False, True, True, False, False], [False, False, False, False, True], width)
    return [*_heading("where the time goes", basis(report), width), *drawn]


def _worth_a_row(rows: list[BreakdownRow], most: int) -> tuple[list[BreakdownRow], list[BreakdownRow]]:
    """The largest in their order, and those that share the last row."""
    large = [place for place, row in enumerate(rows) if row.share >= ACCOUNT_ROW_SHARE] or [0]
    if len(rows) <= most and len(large) >= len(rows) - 1:
        return rows, []
    kept = sorted(large, key=lambda place: -rows[place].ns)[: most - 1]
    rest = [row for place, row in enumerate(rows) if place not in kept]
    return [rows[place] for place in sorted(kept)], rest


def _figures(title: str, part_share: float, ns: float, colour: str) -> list[Text]:
    return [
        Text(title),
        Text(share(part_share)),
        Text(units.duration(ns)),
        Text(bar(part_share, _BAR), colour),
    ]


def _names(row: BreakdownRow, ops: Mapping[str, str | None], room: int) -> str:
    """The longest names, as many as fit; for a wait the code that asked for it."""
    words = ""
    for each in longest_names(row):
        # Nothing can be done about a wait itself: what matters is the code that asked for it.
        name = each.detail if each.detail and _WAIT.search(each.name) else each.name
        figure = f" {100 * each.ns / row.ns:.0f} %"
        left = room - len(placed("", each.place)) - len(figure)
        word = f"{placed(safe(brief_name(name, ops.get(each.name), left)), each.place)}{figure}"
        if words and len(words) + len(word) + 2 > room:
            break
        words = f"{words}, {word}" if words else word
    return words


def brief_name(name: str, op: str | None = None, room: int = _PLACE_ROOM) -> str:
    """A name that fits: of a kernel without template arguments and with its op, of a frame without its folder."""
    short = _FOLDER.sub(r" (", short_name(name))
    base = short.partition("<")[0]
    if base and "(" not in base and not base.startswith("Kernel"):
        short = base
    beside = f" ({cut_middle(op, room // 2)})" if op and op != short else ""
    return cut_middle(short, max(_NAME_LEAST, room - len(beside))) + beside


def _findings(report: Report, width: int, most: int, fix_lines: int) -> list[Text]:
    """The first ones: what it is, what fixing it brings, where, and the fix."""
    if not report.findings:
        return []
    first = report.findings[:most]
    count = f"{len(first)} of {len(report.findings)} findings" if len(report.findings) > len(first) else ""
    found = list(
        _heading("what to change", "; ".join(filter(None, [count, sampled(report), _every(report)])), width)
    )
    for number, finding in enumerate(first, 1):
        found += _finding(number, finding, width, fix_lines)
    return found


def _every(report: Report) -> str:
    return (
        f"all together: speed-up {speedup(report.together)}" if together(report) and report.together else ""
    )


def _finding(number: int, finding: Finding, width: int, fix_lines: int) -> Iterator[Text]:
    label, title, gain = f"  {number}. ", safe(finding.title), _gain(finding)
    gain = f" · {gain}" if gain else ""
    line = Text.assemble((label, "bold"), (title, "bold"), (gain, "green"))
    room = width - line.cell_len - len(_BETWEEN)
    if room >= _PLACE_LEAST and (place := _place(finding, room)):
        line.append(f"{_BETWEEN}{place}", style="dim")
    line.truncate(width, overflow="ellipsis")
    yield line
    if finding.fix:
        yield from _first_lines(safe(finding.fix), width, fix_lines)


def _gain(finding: Finding) -> str:
    if finding.saves_ns_per_step > 0:
        return f"speed-up {units.speedup(finding.speedup.low, finding.speedup.high)}"
    return f"{share(finding.share)} of the step" if finding.class_ == "time" and finding.share else ""


def _place(finding: Finding, room: int) -> str:
    """The function and line, where stacks have them; else the name with most of the time."""
    if finding.where:
        where = finding.where[0]
        place = _FOLDER.sub(r" (", name_place(where.function, where.file, where.line))
        return cut_middle(safe(place), room)
    names = finding.evidence.get("names")
    first = names[0] if isinstance(names, list) and names else None
    name = first.get("name") if isinstance(first, dict) else first
    before = (first.get("place") if isinstance(first, dict) else None) or "in"
    if before == "end":
        return placed("", before)
    if not name or str(name).startswith(_STEP_MARKER):
        return ""
    return placed(safe(brief_name(str(name), room=room - len(before) - 1)), before)


def _first_lines(text: str, width: int, most: int) -> Iterator[Text]:
    """The text in few lines; what is left out, is left out at the end of a word."""
    found = fold(text, width - 7)
    if len(found) > most:
        last = fold(" ".join(found[most - 1 :]), width - 9)[0]
        found = [*found[: most - 1], f"{last.rstrip(' ,;:(')} …"]
    for number, line in enumerate(found):
        yield Text(f"     {'→ ' if number == 0 else '  '}{line}")


def _unknown(report: Report, width: int) -> Iterator[Text]:
    """One or two lines on what the recording does not show."""
    yield Text()
    unknown = what_is_unknown(report)
    if not unknown:
        return
    found = fold(safe("; ".join(unknown)), width - len(_LABEL) - 2)
    if len(found) > 2:
        found = [found[0], f"{found[1].rstrip(' ,;')} …"]
    for number, line in enumerate(found):
        yield Text.assemble((_LABEL if number == 0 else " " * len(_LABEL), "bold"), line)


_LABEL = "not known  "
_MORE = "more       "


def _full(where: str) -> str:
    return f"{_MORE}stepscope report {where} --full"


def _commands(path: str, width: int) -> Iterator[Text]:
    """How to see more; a path that is too long even without the hint is for the reader to fill in."""
    quoted, hint = shlex.quote(safe(path)), "  (or --section NAME)"
    where = quoted if len(_full(quoted)) <= width else "PATH"
    first = _full(where) + hint
    yield Text(first if len(first) <= width else _full(where), style="dim")
    yield Text(f"{' ' * len(_MORE)}stepscope serve {where}", style="dim")

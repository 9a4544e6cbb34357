"""Of several devices in a process the account is that of one, and it says which; other sections say that they are over all."""

from __future__ import annotations

import msgspec

from stepscope.reports.model.report import Report
from stepscope.reports.render.brief import as_brief
from stepscope.reports.render.markdown import as_markdown
from stepscope.reports.render.terminal import as_text
from stepscope.reports.wording.sentence import write_sentence
from tests.builders.reports import report


def on_two_devices() -> Report:
    """A report of one rank whose steps ran on devices 0 and 1, of which 1 decides."""
    found = report()
    rank = found.profile.ranks[0]
    found.profile.ranks = [rank]
    found.steps.rows = [row for row in found.steps.rows if row.rank == rank]
    for row in found.steps.rows:
        row.device = 1
    found.steps.rows += [msgspec.structs.replace(row, device=0) for row in found.steps.rows]
    found.steps.critical_devices = {str(rank): 1}
    return found


def test_the_account_says_of_which_device_it_is() -> None:
    found = on_two_devices()
    found.sentence = write_sentence(found)
    assert "Device 1 is busy" in found.sentence
    for text in (as_brief(found), as_text(found), as_markdown(found)):
        assert "steps, device 1" in text


def test_sections_over_all_devices_say_so() -> None:
    text = as_text(on_two_devices())
    assert "of step time on all devices" in text
    assert "devices busy" in text


def test_of_one_device_nothing_is_said() -> None:
    found = report()
    assert "device 1" not in as_brief(found)
    assert "on all devices" not in as_text(found)

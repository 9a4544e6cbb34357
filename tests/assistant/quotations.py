"""What stands outside of quotations."""

from __future__ import annotations

import re

from stepscope.assistant.untrusted import CLOSE, OPEN


def outside(text: str) -> str:
    """The text without everything that is quoted from a profile; quotations neither nest nor stay open."""
    assert text.count(OPEN) == text.count(CLOSE)
    left = re.sub(f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}", "", text)
    assert OPEN not in left
    return left

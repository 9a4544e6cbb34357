"""How much an assistant is shown."""

from __future__ import annotations

from stepscope.registers.entry import policy

REPORT_TOKENS = policy(
    "REPORT_TOKENS", 1_500, unit="tokens", why="of the first answer: the verdict and every finding fit"
)
LEAST_TOKENS = policy("LEAST_TOKENS", 200, unit="tokens", why="below which not even the verdict fits")
ANSWER_TOKENS = policy("ANSWER_TOKENS", 500, unit="tokens", why="of an answer about one handle")
QUOTED_LONGEST = policy(
    "QUOTED_LONGEST", 80, unit="characters", why="of a name out of a profile: enough to recognise it"
)
FIX_LONGEST = policy(
    "FIX_LONGEST", 260, unit="characters", why="of a fix in a list; the finding has all of it"
)
ANSWER_ROWS = policy("ANSWER_ROWS", 50, unit="rows", why="that a query reads for an answer, at most")
QUERY_SECONDS = policy("QUERY_SECONDS", 30, unit="s", why="after which a query of an assistant ends")

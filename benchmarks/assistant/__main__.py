"""Prints each question with its answer, the truth and the tokens that it took; fails where an answer is wrong."""

from __future__ import annotations

import asyncio
import sys

from benchmarks.assistant.questions import ask_all


def main() -> int:
    """Ask them all."""
    answers = asyncio.run(ask_all())
    for answer in answers:
        mark = "right" if answer.is_right else f"WRONG, {answer.truth}"
        tokens = " + ".join(map(str, (answer.first_tokens, *answer.further_tokens)))
        print(f"{answer.question:64} {answer.answer:20} {mark:20} {tokens} tokens")
    right = sum(answer.is_right for answer in answers)
    print(f"{right} of {len(answers)} right")
    return 0 if right == len(answers) else 1


if __name__ == "__main__":
    sys.exit(main())

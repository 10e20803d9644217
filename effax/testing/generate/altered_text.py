"""Texts similar to that of a program: some tokens are replaced, inserted, removed or exchanged."""

from __future__ import annotations

import re
from typing import Final

from effax.testing.generate.random_source import RandomSource

_TOKEN: Final = re.compile(r"\s+|\w+|[^\w\s]")

_NUMBERS: Final = ("0", "1", "-1", "7", "1.5", "-0.0", "nan", "inf", "1e999", "2j", "True", "None")
_HUGE: Final = ("9" * 25, "-" + "9" * 25, str(2**31), str(2**63), "9" * 5000)
_MARKS: Final = tuple("()[]{};:,.=*@'\"#|+-<~!\\\n")
_WORDS: Final = (
    *("a", "b", "zz", "let", "in", "lambda", "<-", "+=", "...", "@a", "f32", "i8", "~f32[]"),
    *(
        "Ref{f32[3]}",
        "float0",
        "float32",
        "frozenset({1})",
        "((((",
        "[*]",
        "!{read a}",
        "1.5:i32[]",
    ),
)


def altered_text(choose: RandomSource, text: str) -> str:
    """Return the text with some tokens changed; numbers more often than others."""
    tokens = _TOKEN.findall(text)
    for _ in range(choose.between(1, 3)):
        numbers = [i for i, token in enumerate(tokens) if token.isdigit()]
        if numbers and choose.chance(50):
            tokens[choose.pick(numbers)] = choose.pick((*_NUMBERS, *_HUGE))
            continue
        at = choose.below(len(tokens))
        match choose.below(4):
            case 0:
                tokens[at] = choose.pick((*_WORDS, *_MARKS, *_NUMBERS, *_HUGE))
            case 1:
                tokens.insert(at, choose.pick((*_WORDS, *_MARKS)))
            case 2:
                tokens[at] = ""
            case _:
                other = choose.below(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)

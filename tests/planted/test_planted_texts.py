"""Bugs planted in the parser and the printer: the laws of texts notice each."""

from __future__ import annotations

import re

import numpy as np
import pytest

from effax.ir.dtypes import DType
from effax.ir.syntax import Lit
from effax.ir.text import constants, lexer, parameter_parser
from effax.testing import LawBroken, check_law, laws


def test_ill_typed_literals(monkeypatch: pytest.MonkeyPatch) -> None:
    def accepted(literal: Lit) -> None:
        return None

    monkeypatch.setattr(lexer, "literal_fault", accepted)
    with pytest.raises(LawBroken, match="a literal does not have its type"):
        check_law(laws.parse_refuses_other_texts)


def test_positions_that_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    def unbounded(scan: lexer.Lexer, found: re.Match[str]) -> object:
        return scan.number(found)

    def steps(first: int, stop: int, step: int) -> int:
        return len(range(first, stop, step))

    monkeypatch.setattr(lexer.Lexer, "position", unbounded)
    monkeypatch.setattr(parameter_parser, "_steps", steps)
    with pytest.raises(LawBroken, match="OverflowError"):
        check_law(laws.parse_refuses_other_texts, focus=["refs.get", "index.gather"])


def test_constants_without_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsigned(x: np.generic, dtype: DType) -> str:
        return str(x).lstrip("-")

    monkeypatch.setattr(constants, "_text", unsigned)
    with pytest.raises(LawBroken, match="the parsed program differs"):
        check_law(laws.parse_inverts_print_of_closed)

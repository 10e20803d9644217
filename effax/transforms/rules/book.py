"""The library's own rule book: the families together."""

from __future__ import annotations

from typing import Final

from effax.transforms.rulebook import RuleBook
from effax.transforms.rules.arith import ARITHMETIC
from effax.transforms.rules.control import CONTROL
from effax.transforms.rules.refs.book import REFS

DEFAULT_BOOK: Final[RuleBook] = ARITHMETIC.union(CONTROL).union(REFS)

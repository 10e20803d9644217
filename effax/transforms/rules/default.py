"""The library's own rule book: the families together."""

from __future__ import annotations

from functools import reduce
from typing import Final

from effax.transforms.framework.pass_ import register_default_rules
from effax.transforms.framework.rules import NO_RULES, RuleSet
from effax.transforms.rules.arith import ARITHMETIC
from effax.transforms.rules.collective import COLLECTIVES
from effax.transforms.rules.combining import COMBINING
from effax.transforms.rules.compare import COMPARISON
from effax.transforms.rules.contract import CONTRACTION
from effax.transforms.rules.control import CONTROL
from effax.transforms.rules.conv import CONVOLUTION
from effax.transforms.rules.custom.rules import CUSTOM
from effax.transforms.rules.fft import FOURIER
from effax.transforms.rules.host import HOST
from effax.transforms.rules.index import INDEX
from effax.transforms.rules.linalg import LINALG
from effax.transforms.rules.math import MATH
from effax.transforms.rules.reduce import REDUCTION
from effax.transforms.rules.refs.rules import REFS
from effax.transforms.rules.remat.rules import REMAT
from effax.transforms.rules.shape import SHAPE
from effax.transforms.rules.shard.rules import SHARD
from effax.transforms.rules.solve import SOLUTION

FAMILIES: Final = (
    ARITHMETIC,
    MATH,
    COMPARISON,
    SHAPE,
    REDUCTION,
    CONTRACTION,
    CONVOLUTION,
    LINALG,
    FOURIER,
    INDEX,
    COMBINING,
    REFS,
    CONTROL,
    CUSTOM,
    REMAT,
    COLLECTIVES,
    SHARD,
    HOST,
    SOLUTION,
)

DEFAULT_RULES: Final[RuleSet] = reduce(RuleSet.union, FAMILIES, NO_RULES)
register_default_rules(DEFAULT_RULES)

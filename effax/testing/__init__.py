"""Tools for tests of programs and of passes: gradients against differences, laws, generators.

- :func:`check_grads` compares a function's derivatives with differences.
- :func:`check_primitive` holds a primitive of your own to every law.
- :func:`check_effects` holds effects of kinds of your own to what passes take from them.
- :func:`check_pass` holds a pass or a pipeline to what it claims, on random programs.
- :func:`check_laws` holds passes, or the rules of a book, to the laws on random programs.
- :func:`law` makes a law of a function of yours, and :func:`check_law` tries it on random programs.
- :mod:`effax.testing.laws` has the laws of the library, for programs of your own, for rules of your
  own (another rule book) and for passes of your own.
- :class:`Features` says what random programs have, and :func:`step_names` of what they may be full;
  :func:`random_inputs`, :func:`check_equal` and :func:`check_all` are for laws about numbers.
- :mod:`effax.testing.strategies` has Hypothesis strategies for random well-typed programs. It needs
  Hypothesis; nothing else here does.
"""

from __future__ import annotations

from effax.testing import laws
from effax.testing.claims import PassReport, Unproved, check_pass
from effax.testing.features import ANYTHING, COMPILED, NUMERIC, SMOOTH, Features
from effax.testing.grads import check_grads
from effax.testing.growth import step_names
from effax.testing.kinds import check_effects
from effax.testing.passes import Passes
from effax.testing.primitives import Checked, Refused, check_primitive
from effax.testing.report import LawBroken
from effax.testing.search import check_law, check_laws
from effax.testing.statement import About, Law, assume, law
from effax.testing.trying import Tried
from effax.testing.values import check_all, check_equal, random_inputs

__all__ = [
    "ANYTHING",
    "COMPILED",
    "NUMERIC",
    "SMOOTH",
    "About",
    "Checked",
    "Features",
    "Law",
    "LawBroken",
    "PassReport",
    "Passes",
    "Refused",
    "Tried",
    "Unproved",
    "assume",
    "check_all",
    "check_effects",
    "check_equal",
    "check_grads",
    "check_law",
    "check_laws",
    "check_pass",
    "check_primitive",
    "law",
    "laws",
    "random_inputs",
    "step_names",
]

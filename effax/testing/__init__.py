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
from effax.testing.check_effects import check_effects
from effax.testing.check_grads import check_grads
from effax.testing.check_laws import check_law, check_laws
from effax.testing.check_pass import Inconclusive, PassReport, check_pass
from effax.testing.check_primitive import Checked, Refused, check_primitive
from effax.testing.generate.features import ANYTHING, COMPILED, NUMERIC, SMOOTH, Features
from effax.testing.generate.steps import step_names
from effax.testing.generate.values import check_all, check_equal, random_inputs
from effax.testing.laws.law import About, Law, assume, law
from effax.testing.laws.pass_set import Passes
from effax.testing.laws.runner import Tried
from effax.testing.report.report import LawBroken

__all__ = [
    "ANYTHING",
    "COMPILED",
    "NUMERIC",
    "SMOOTH",
    "About",
    "Checked",
    "Features",
    "Inconclusive",
    "Law",
    "LawBroken",
    "PassReport",
    "Passes",
    "Refused",
    "Tried",
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

"""Test programs and passes: derivatives against differences, laws, generators.

- :func:`check_grads` compares derivatives of a function with differences.
- :func:`check_primitive`, :func:`check_pass` and :func:`check_laws` check a primitive, a pass or
  the transformations against the laws; :func:`check_effects` checks kinds of side effects.
- :func:`law` declares a law, and :func:`check_law` tries it on random programs; :mod:`laws` has the
  laws of the library.
- :class:`Features` and :func:`step_names` select random programs; :func:`random_inputs`,
  :func:`special_inputs`, :func:`check_equal`, :func:`check_all` and :func:`check_close` serve laws
  about numbers.
- :mod:`effax.testing.strategies` has the programs as Hypothesis strategies; it alone needs it.
"""

from __future__ import annotations

from effax.testing import laws
from effax.testing.check_effects import check_effects
from effax.testing.check_grads import check_grads
from effax.testing.check_laws import check_law, check_laws
from effax.testing.check_pass import PassReport, check_pass
from effax.testing.check_primitive import Checked, Refused, check_primitive
from effax.testing.generate.features import ANYTHING, COMPILED, NUMERIC, SMOOTH, Features
from effax.testing.generate.steps import step_names
from effax.testing.generate.values import check_all, check_equal, random_inputs
from effax.testing.laws.equivalence import special_inputs
from effax.testing.laws.law import About, Law, assume, law
from effax.testing.laws.runner import Tried
from effax.testing.laws.tolerance import Tolerances, check_close
from effax.testing.laws.transformations import Passes
from effax.testing.report.report import Inconclusive, LawBroken

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
    "Tolerances",
    "Tried",
    "assume",
    "check_all",
    "check_close",
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
    "special_inputs",
    "step_names",
]

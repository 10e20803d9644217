"""The transformations that laws check, as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from effax.ir.syntax import Jaxpr
from effax.transforms.checkify.conditions import Errors
from effax.transforms.checkify.engine import CheckedProgram, checkify
from effax.transforms.discharge import Discharged, discharge
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import unwrap
from effax.transforms.jvp import Jvp, jvp
from effax.transforms.optimize.dce import Dce, dce
from effax.transforms.optimize.inline import inline
from effax.transforms.partial_eval.partial_eval import PartialEval, partial_eval
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.transpose.cotangent_spec import CotangentSpec
from effax.transforms.transpose.engine import Transposed, transpose
from effax.transforms.vmap.engine import Vmapped, vmap


@dataclass(frozen=True)
class Passes:
    """The passes that laws run; they raise TransformError.

    Replace one (``dataclasses.replace``) to check another pass, or the rule set to check other
    rules.
    """

    rules: RuleSet = DEFAULT_RULES
    jvp_with: Callable[[Jaxpr, Mask, RuleSet], Jvp] = field(
        default=lambda jaxpr, mask, rules: unwrap(jvp(jaxpr, mask, rules=rules))
    )
    vmap_with: Callable[[Jaxpr, int, Sequence[int | None], RuleSet], Vmapped] = field(
        default=lambda jaxpr, size, axes, rules: unwrap(vmap(jaxpr, size, axes, rules=rules))
    )
    partial_eval_with: Callable[[Jaxpr, Mask, Mask, RuleSet], PartialEval] = field(
        default=lambda jaxpr, known, forced, rules: unwrap(
            partial_eval(jaxpr, known, instantiate=forced, rules=rules)
        )
    )
    transpose_with: Callable[[Jaxpr, Sequence[CotangentSpec], RuleSet], Transposed] = field(
        default=lambda jaxpr, ct_specs, rules: unwrap(transpose(jaxpr, ct_specs, rules=rules))
    )
    discharge_with: Callable[[Jaxpr, RuleSet], Discharged] = field(
        default=lambda jaxpr, rules: unwrap(discharge(jaxpr, rules))
    )
    dce: Callable[[Jaxpr, Mask], Dce] = field(default=lambda jaxpr, used: unwrap(dce(jaxpr, used)))
    checkify: Callable[[Jaxpr, Errors], CheckedProgram] = field(
        default=lambda jaxpr, errors: unwrap(checkify(jaxpr, errors))
    )
    inline: Callable[[Jaxpr], Jaxpr] = field(default=lambda jaxpr: unwrap(inline(jaxpr)))

    def jvp(self, jaxpr: Jaxpr, mask: Sequence[bool]) -> Jvp:
        """Return the derivative with respect to the inputs of the mask."""
        return self.jvp_with(jaxpr, tuple(mask), self.rules)

    def vmap(self, jaxpr: Jaxpr, size: int, axes: Sequence[int | None]) -> Vmapped:
        """Return the batched program, every result along its leading axis."""
        return self.vmap_with(jaxpr, size, axes, self.rules)

    def partial_eval(
        self, jaxpr: Jaxpr, known: Sequence[bool], forced: Sequence[bool] | None = None
    ) -> PartialEval:
        """Return the known and unknown jaxprs; the unknown one returns the ``forced`` results."""
        wanted = (False,) * len(jaxpr.outs) if forced is None else tuple(forced)
        return self.partial_eval_with(jaxpr, tuple(known), wanted, self.rules)

    def transpose(self, jaxpr: Jaxpr, ct_specs: Sequence[CotangentSpec]) -> Transposed:
        """Return the transposed program, with a cotangent for every floating result."""
        return self.transpose_with(jaxpr, ct_specs, self.rules)

    def discharge(self, jaxpr: Jaxpr) -> Discharged:
        """Return the program without references."""
        return self.discharge_with(jaxpr, self.rules)


LIBRARY: Final = Passes()
"""The passes of the library."""

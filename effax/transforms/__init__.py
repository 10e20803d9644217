"""Pure passes: every transformation is a function from jaxprs and plain data to jaxprs.

Each returns a ``Result``: a ``Success`` with a program or record, or a ``Failure`` with the error.
The package has the transformations, the passes that shrink programs, the language of rewrite rules
(``RewriteRule``, ``Hole``, ``App``, ``rewriting``), and the rules of each primitive (``RuleSet``)::

    from effax.transforms import dce, jvp, rewriting, vmap

``effax.transforms.jvp`` is the function, not the module. Passes as values are in
:mod:`effax.passes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.transforms.checkify.engine import CheckedProgram, checkify
    from effax.transforms.discharge import Discharged, discharge
    from effax.transforms.framework.rules import (
        NO_RULES,
        BatchBuilder,
        BatchOut,
        BatchRule,
        DischargeOut,
        DischargeRule,
        HasRules,
        Indivisible,
        JvpOut,
        JvpRule,
        Linear,
        PartialEvalOut,
        PartialEvalRule,
        Policy,
        RuleBuilder,
        Rules,
        RuleSet,
        TransposeRule,
        Unsupported,
    )
    from effax.transforms.framework.runner import unwrap
    from effax.transforms.jvp import Jvp, jvp
    from effax.transforms.linearize import Linearized, linearize
    from effax.transforms.optimize.accumulate import accumulate, fuse_accumulations
    from effax.transforms.optimize.cse import cse
    from effax.transforms.optimize.dce import Dce, dce
    from effax.transforms.optimize.dead_stores import dead_stores
    from effax.transforms.optimize.fold import fold
    from effax.transforms.optimize.forward_stores import forward_stores
    from effax.transforms.optimize.inline import inline
    from effax.transforms.optimize.licm import hoist, loop_carries
    from effax.transforms.optimize.outline import outline
    from effax.transforms.optimize.rewrite import (
        ANY,
        BOOL,
        COMPLEX,
        FLOATS,
        INTEGERS,
        NUMBERS,
        REALS,
        AnyNumber,
        App,
        Body,
        CostFunction,
        Hole,
        Index,
        IndexHole,
        Let,
        Match,
        Number,
        Param,
        Pattern,
        Rest,
        RewriteRule,
        Right,
        Sample,
        Seq,
        equation_count,
        match,
        rewriting,
        weighted,
    )
    from effax.transforms.optimize.rule_parser import parse_rule
    from effax.transforms.optimize.simplify import simplify
    from effax.transforms.optimize.unroll import unroll
    from effax.transforms.partial_eval.partial_eval import (
        FromInput,
        FromOutput,
        PartialEval,
        Residual,
        partial_eval,
        recompose,
    )
    from effax.transforms.reverse.bounded_while import Checkpoints, bounded
    from effax.transforms.reverse.engine import Reverse, reverse
    from effax.transforms.rules.default import DEFAULT_RULES
    from effax.transforms.transpose.cotangent_spec import (
        CotangentSpec,
        CotangentSpecs,
        DontWant,
        GradRef,
        GradValue,
        NonLinear,
        ThreadedRef,
    )
    from effax.transforms.transpose.engine import Transposed, transpose
    from effax.transforms.vmap.engine import Vmapped, vmap
else:
    __getattr__, __dir__ = _lazy(__name__)

__all__ = [
    "ANY",
    "BOOL",
    "COMPLEX",
    "DEFAULT_RULES",
    "FLOATS",
    "INTEGERS",
    "NO_RULES",
    "NUMBERS",
    "REALS",
    "AnyNumber",
    "App",
    "BatchBuilder",
    "BatchOut",
    "BatchRule",
    "Body",
    "CheckedProgram",
    "Checkpoints",
    "CostFunction",
    "CotangentSpec",
    "CotangentSpecs",
    "Dce",
    "DischargeOut",
    "DischargeRule",
    "Discharged",
    "DontWant",
    "FromInput",
    "FromOutput",
    "GradRef",
    "GradValue",
    "HasRules",
    "Hole",
    "Index",
    "IndexHole",
    "Indivisible",
    "Jvp",
    "JvpOut",
    "JvpRule",
    "Let",
    "Linear",
    "Linearized",
    "Match",
    "NonLinear",
    "Number",
    "Param",
    "PartialEval",
    "PartialEvalOut",
    "PartialEvalRule",
    "Pattern",
    "Policy",
    "Residual",
    "Rest",
    "Reverse",
    "RewriteRule",
    "Right",
    "RuleBuilder",
    "RuleSet",
    "Rules",
    "Sample",
    "Seq",
    "ThreadedRef",
    "TransposeRule",
    "Transposed",
    "Unsupported",
    "Vmapped",
    "accumulate",
    "bounded",
    "checkify",
    "cse",
    "dce",
    "dead_stores",
    "discharge",
    "equation_count",
    "fold",
    "forward_stores",
    "fuse_accumulations",
    "hoist",
    "inline",
    "jvp",
    "linearize",
    "loop_carries",
    "match",
    "outline",
    "parse_rule",
    "partial_eval",
    "recompose",
    "reverse",
    "rewriting",
    "simplify",
    "transpose",
    "unroll",
    "unwrap",
    "vmap",
    "weighted",
]

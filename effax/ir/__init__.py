"""Programs as values: types, syntax, text, checking, editing, evaluation.

::

    from effax.ir import Jaxpr, check, diff, evaluate, parse, replace_eqn, to_json, walk

All that is public here is in ``__all__``. Primitives are in :mod:`effax.ir.prims`, effects in
:mod:`effax.effects`. A function may have the name of the module that defines it: ``effax.ir.parse``
is the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.ir.analysis.check import check, checked
    from effax.ir.analysis.cost.record import Cost, LiveValue, LoopCost, ProgramCost, WorkTable
    from effax.ir.analysis.dataflow import Analysis, Facts, Visit, analyze, walk_facts
    from effax.ir.analysis.diff import Change, Diff, diff
    from effax.ir.analysis.faults import Fault, FaultKind
    from effax.ir.analysis.queries import (
        Definition,
        DefUse,
        EffectOrder,
        Liveness,
        PathStep,
        Place,
        Use,
        def_use,
        effect_order,
        effects_on_variables,
        free_variables,
        liveness,
        size,
        walk,
    )
    from effax.ir.axes import Axes, Axis
    from effax.ir.build import Builder, Template, TemplateEqn, Where, lit, template, typing_of
    from effax.ir.dtypes import DType, as_dtype
    from effax.ir.edit.alpha import alpha_eq, renumbered
    from effax.ir.edit.loops import (
        LoopBody,
        LoopStep,
        add_carry,
        add_constants,
        add_xs,
        add_ys,
        drop_carries,
        drop_constants,
        drop_xs,
        drop_ys,
        permute_carries,
        permute_constants,
        permute_xs,
        permute_ys,
    )
    from effax.ir.edit.mapping import EqnChange, map_eqns
    from effax.ir.edit.operations import (
        Edited,
        equation,
        everywhere,
        insert,
        map_prim_subjaxprs,
        map_subjaxprs,
        remove,
        rename,
        replace_eqn,
        splice,
        substitute,
        with_prim,
    )
    from effax.ir.edit.signature import (
        add_inputs,
        add_results,
        drop_inputs,
        drop_results,
        permute_inputs,
        permute_results,
    )
    from effax.ir.errors import (
        BadArgument,
        BadAxis,
        BadFormat,
        BadIndex,
        BadRule,
        BadSlice,
        ConcretizationError,
        Divergence,
        EffaxError,
        IllTyped,
        InconclusiveDimension,
        LeakedTracer,
        LoweringError,
        MissingRule,
        NotApplicable,
        NotFitting,
        NotSupported,
        ParseError,
        RefError,
        Refusal,
        TooDeep,
        TransformError,
        UnboundAxis,
        Unfinished,
    )
    from effax.ir.eval.checked import evaluate
    from effax.ir.eval.numpy import literal_value
    from effax.ir.indexing import Dim, Indexer, Mode, Pick, Span, whole
    from effax.ir.primitive import ByReference, Primitive, Region, Typing, Value
    from effax.ir.regions.forms import branch_regions, call_region, loop_region, while_regions
    from effax.ir.registry import Registry, registry
    from effax.ir.source import SavedSource, Source
    from effax.ir.syntax import Atom, ClosedJaxpr, Eqn, Jaxpr, Lit, Scalar, Var, has_side_effects
    from effax.ir.text.json import from_json, to_json
    from effax.ir.text.parser import parse
    from effax.ir.text.printer import eqn_str, pretty, references
    from effax.ir.types import (
        ArrayType,
        RefKind,
        RefType,
        Shape,
        Type,
        array_type,
        is_inexact,
        ref_type,
        tangent_type,
        type_of_value,
    )
    from effax.ir.work import Work, moved
else:
    __getattr__, __dir__ = _lazy(__name__)

__all__ = [
    "Analysis",
    "ArrayType",
    "Atom",
    "Axes",
    "Axis",
    "BadArgument",
    "BadAxis",
    "BadFormat",
    "BadIndex",
    "BadRule",
    "BadSlice",
    "Builder",
    "ByReference",
    "Change",
    "ClosedJaxpr",
    "ConcretizationError",
    "Cost",
    "DType",
    "DefUse",
    "Definition",
    "Diff",
    "Dim",
    "Divergence",
    "Edited",
    "EffaxError",
    "EffectOrder",
    "Eqn",
    "EqnChange",
    "Facts",
    "Fault",
    "FaultKind",
    "IllTyped",
    "InconclusiveDimension",
    "Indexer",
    "Jaxpr",
    "LeakedTracer",
    "Lit",
    "LiveValue",
    "Liveness",
    "LoopBody",
    "LoopCost",
    "LoopStep",
    "LoweringError",
    "MissingRule",
    "Mode",
    "NotApplicable",
    "NotFitting",
    "NotSupported",
    "ParseError",
    "PathStep",
    "Pick",
    "Place",
    "Primitive",
    "ProgramCost",
    "RefError",
    "RefKind",
    "RefType",
    "Refusal",
    "Region",
    "Registry",
    "SavedSource",
    "Scalar",
    "Shape",
    "Source",
    "Span",
    "Template",
    "TemplateEqn",
    "TooDeep",
    "TransformError",
    "Type",
    "Typing",
    "UnboundAxis",
    "Unfinished",
    "Use",
    "Value",
    "Var",
    "Visit",
    "Where",
    "Work",
    "WorkTable",
    "add_carry",
    "add_constants",
    "add_inputs",
    "add_results",
    "add_xs",
    "add_ys",
    "alpha_eq",
    "analyze",
    "array_type",
    "as_dtype",
    "branch_regions",
    "call_region",
    "check",
    "checked",
    "def_use",
    "diff",
    "drop_carries",
    "drop_constants",
    "drop_inputs",
    "drop_results",
    "drop_xs",
    "drop_ys",
    "effect_order",
    "effects_on_variables",
    "eqn_str",
    "equation",
    "evaluate",
    "everywhere",
    "free_variables",
    "from_json",
    "has_side_effects",
    "insert",
    "is_inexact",
    "lit",
    "literal_value",
    "liveness",
    "loop_region",
    "map_eqns",
    "map_prim_subjaxprs",
    "map_subjaxprs",
    "moved",
    "parse",
    "permute_carries",
    "permute_constants",
    "permute_inputs",
    "permute_results",
    "permute_xs",
    "permute_ys",
    "pretty",
    "ref_type",
    "references",
    "registry",
    "remove",
    "rename",
    "renumbered",
    "replace_eqn",
    "size",
    "splice",
    "substitute",
    "tangent_type",
    "template",
    "to_json",
    "type_of_value",
    "typing_of",
    "walk",
    "walk_facts",
    "while_regions",
    "whole",
    "with_prim",
]

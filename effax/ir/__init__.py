"""Programs as values: types, syntax, text, checking, editing, evaluation.

::

    from effax.ir import Jaxpr, check, diff, evaluate, parse, replace_eqn, to_json, walk

All that is public here is in ``__all__``. Primitives are in :mod:`effax.ir.prims`, effects in
:mod:`effax.effects`. A function may have the name of the module that defines it: ``effax.ir.parse``
is the function.
"""

from __future__ import annotations

from effax.ir import pickling as _pickling  # noqa: F401  # registers how jaxprs are pickled
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
from effax.ir.dtypes import DType
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
from effax.ir.errors import (
    BadArgument,
    BadIndex,
    BadRule,
    ConcretizationError,
    Divergence,
    EffaxError,
    IllTyped,
    InconclusiveDimension,
    LeakedTracer,
    LoweringError,
    NotApplicable,
    ParseError,
    RefError,
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
from effax.ir.syntax import (
    Atom,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Lit,
    Scalar,
    Var,
    alpha_eq,
    has_side_effects,
    renumbered,
)
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

__all__ = [
    "Analysis",
    "ArrayType",
    "Atom",
    "Axes",
    "Axis",
    "BadArgument",
    "BadIndex",
    "BadRule",
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
    "LoopCost",
    "LoweringError",
    "Mode",
    "NotApplicable",
    "ParseError",
    "PathStep",
    "Pick",
    "Place",
    "Primitive",
    "ProgramCost",
    "RefError",
    "RefKind",
    "RefType",
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
    "alpha_eq",
    "analyze",
    "array_type",
    "branch_regions",
    "call_region",
    "check",
    "checked",
    "def_use",
    "diff",
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

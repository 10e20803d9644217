"""Errors that have a name in JAX, under that name."""

from __future__ import annotations

from effax.ir.errors import ArrayConversionError as TracerArrayConversionError
from effax.ir.errors import BoolConversionError as TracerBoolConversionError
from effax.ir.errors import BooleanIndexError as NonConcreteBooleanIndexError
from effax.ir.errors import ConcretizationError as ConcretizationTypeError
from effax.ir.errors import IllTyped as JaxprTypeError
from effax.ir.errors import InconclusiveDimension as InconclusiveDimensionOperation
from effax.ir.errors import IntegerConversionError as TracerIntegerConversionError
from effax.ir.errors import LeakedTracer as UnexpectedTracerError
from effax.ir.errors import LoweringError as JaxRuntimeError
from effax.ir.errors import TracerIndexError as JAXIndexError
from effax.ir.errors import TracerTypeError as JAXTypeError

__all__ = [
    "ConcretizationTypeError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]

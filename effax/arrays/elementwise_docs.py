"""Docstrings of the elementwise functions of numpy and lax, built from one table."""

from __future__ import annotations

from typing import Final

# Names | summary | operands of the example | elements of its result
_TABLE: Final = """
add|Return ``{x} + {y}``; on booleans, logical or.|[1, 2], 2|[3, 4]
subtract sub|Return ``{x} - {y}``.|[1, 2], 3|[-2, -1]
multiply|Return ``{x} * {y}``; on booleans, logical and.|[2], 3|[6]
mul|Return ``{x} * {y}``.|[2], 3|[6]
divide|Return ``{x} / {y}``.|[1], 4|[0.25]
div|Return ``{x} / {y}``; integers round towards 0.|[7], 2|[3]
rem|Return the remainder of ``{x} / {y}``, with the sign of ``{x}``.|[-7], 3|[-1]
maximum max|Return the larger operand; nan if one is nan.|[1, 3], 2|[2, 3]
minimum min|Return the smaller operand; nan if one is nan.|[1, 3], 2|[1, 2]
arctan2|Return the angle of the point (x2, x1), in radians.|[0.0], 1.0|[0.]
atan2|Return the angle of the point (y, x), in radians.|[0.0], 1.0|[0.]
nextafter|Return the next value after ``{x}`` towards ``{y}``.|[1.0], 2.0|[1.0000001]
complex|Return the complex number with real part ``x`` and imaginary part ``y``.|[1.0], 2.0|[1.+2.j]
equal eq|Return whether ``{x} == {y}``.|[1, 2, 3], 2|[False,  True, False]
not_equal ne|Return whether ``{x} != {y}``.|[1, 2, 3], 2|[ True, False,  True]
less lt|Return whether ``{x} < {y}``.|[1, 2, 3], 2|[ True, False, False]
less_equal le|Return whether ``{x} <= {y}``.|[1, 2, 3], 2|[ True,  True, False]
greater gt|Return whether ``{x} > {y}``.|[1, 2, 3], 2|[False, False,  True]
greater_equal ge|Return whether ``{x} >= {y}``.|[1, 2, 3], 2|[False,  True,  True]
bitwise_and|Return the bitwise and; on booleans, logical and.|[6], 3|[2]
bitwise_or|Return the bitwise or; on booleans, logical or.|[6], 3|[7]
bitwise_xor|Return the bitwise exclusive or.|[6], 3|[5]
left_shift shift_left|Return ``{x}`` shifted left by ``{y}`` bits.|[3], 2|[12]
shift_right_logical|Return ``{x}`` shifted right by ``{y}`` bits; shifts in zeros.|[12], 2|[3]
shift_right_arithmetic|Return ``{x}`` shifted right by ``{y}`` bits; keeps the sign.|[-12], 2|[-3]
float_power|Return ``{x} ** {y}`` in a floating dtype.|[2], 3|[8.]
negative neg|Return ``-x``.|[2]|[-2]
abs|Return the magnitude of ``x``.|[-2]|[2]
sign|Return -1, 0 or 1, the sign of ``x``; ``x / abs(x)`` for complex ``x``.|[-2.5]|[-1.]
is_finite|Return whether ``x`` is neither infinite nor nan.|[1.0]|[ True]
exp|Return ``e ** x``.|[0.0]|[1.]
exp2|Return ``2 ** x``.|[3.0]|[8.]
expm1|Return ``exp(x) - 1``, accurate near 0.|[0.0]|[0.]
log|Return the natural logarithm of ``x``.|[1.0]|[0.]
log1p|Return ``log(1 + x)``, accurate near 0.|[0.0]|[0.]
sqrt|Return the square root of ``x``.|[9.0]|[3.]
rsqrt|Return ``1 / sqrt(x)``.|[4.0]|[0.5]
cbrt|Return the cube root of ``x``.|[8.0]|[2.]
square|Return ``x * x``.|[3]|[9]
sin|Return the sine of ``x``, in radians.|[0.0]|[0.]
cos|Return the cosine of ``x``, in radians.|[0.0]|[1.]
tan|Return the tangent of ``x``, in radians.|[0.0]|[0.]
arcsin asin|Return the inverse sine of ``x``, in radians.|[0.0]|[0.]
arccos acos|Return the inverse cosine of ``x``, in radians.|[1.0]|[0.]
arctan atan|Return the inverse tangent of ``x``, in radians.|[0.0]|[0.]
sinh|Return the hyperbolic sine of ``x``.|[0.0]|[0.]
cosh|Return the hyperbolic cosine of ``x``.|[0.0]|[1.]
tanh|Return the hyperbolic tangent of ``x``.|[0.0]|[0.]
arcsinh asinh|Return the inverse hyperbolic sine of ``x``.|[0.0]|[0.]
arccosh acosh|Return the inverse hyperbolic cosine of ``x``.|[1.0]|[0.]
arctanh atanh|Return the inverse hyperbolic tangent of ``x``.|[0.0]|[0.]
lgamma|Return ``log(abs(gamma(x)))``.|[3.0]|[0.6931472]
digamma|Return the derivative of ``lgamma(x)``.|[1.0]|[-0.5772157]
bessel_i0e|Return ``exp(-abs(x)) * I0(x)``, with the modified Bessel function I0.|[0.0]|[1.]
bessel_i1e|Return ``exp(-abs(x)) * I1(x)``, with the modified Bessel function I1.|[0.0]|[0.]
logistic|Return ``1 / (1 + exp(-x))``.|[0.0]|[0.5]
erf|Return the error function of ``x``.|[0.0]|[0.]
erfc|Return ``1 - erf(x)``, accurate for large ``x``.|[0.0]|[1.]
invert bitwise_not|Return the bitwise complement; on booleans, logical not.|[5]|[-6]
floor|Return the largest integer not above ``x``.|[1.5]|[1.]
rint|Return ``x`` rounded to the nearest integer, ties to even.|[2.5]|[2.]
ceil|Return the smallest integer not below ``x``.|[1.5]|[2.]
population_count|Return the number of bits set in ``x``.|[7]|[3]
real|Return the real part of a complex ``x``.|[1 + 2j]|[1.]
imag|Return the imaginary part of a complex ``x``.|[1 + 2j]|[2.]
"""
_ROWS: Final = {
    name: line.split("|")[1:]
    for line in _TABLE.strip().splitlines()
    for name in line.split("|", 1)[0].split()
}


# The dtype of an example's result, by the first mark that its elements contain.
_DTYPES: Final = (("j", "complex64"), (".", "float32"), ("e", "bool"), ("", "int32"))
_OPERAND: Final = {
    "jnp": "array or scalar; dtypes promote, shapes broadcast.",
    "lax": "array or Python scalar; operands have one dtype and shape.",
}


_ACCURACY: Final = (
    "    accuracy: a ``Tolerance`` or an ``AccuracyMode``, which select no other implementation."
)


def elementwise_doc(
    namespace: str, name: str, *operands: str, inexact: bool = False, accuracy: bool = False
) -> str:
    """Return the docstring of an elementwise function.

    Args:
        namespace: prefix of the function in the example, "jnp" or "lax".
        name: the function, a row of the table.
        operands: names of its one or two parameters.
        inexact: whether its results have an inexact dtype for any operands.
        accuracy: whether it has the parameter of that name.
    """
    summary, example, elements = _ROWS[name]
    first, end, rest = example.partition("]")
    dtype = next(dtype for mark, dtype in _DTYPES if mark in elements)
    kind = "Boolean array" if dtype == "bool" else "Inexact array" if inexact else "Array"
    return "\n".join(
        [
            summary.format(x=operands[0], y=operands[-1]),
            "\nArgs:",
            *(f"    {operand}: {_OPERAND[namespace]}" for operand in operands),
            *([_ACCURACY] if accuracy else []),
            f"\nReturns:\n    {kind} of the common shape of the operands.",
            "\nRaises:\n    IllTyped: an operand is not an array, or dtypes or shapes do not fit.",
            f"\n>>> {namespace}.{name}(jnp.array({first}{end}){rest})",
            f"Array({elements}, dtype={dtype})",
        ]
    )

"""The named axes in scope, which the traces of this thread bind."""

from __future__ import annotations

from effax.ir.axes import BIND_IT, Axes, Axis, unbound_axis
from effax.ir.trace import current_trace


def checked_axes() -> Axes:
    """Return the named axes in scope along which variance is checked."""
    trace = current_trace()
    if trace is None or not trace.checked:
        return ()
    return tuple([axis for axis in trace.axes.values() if axis.name in trace.checked])


def axes_in_scope() -> Axes:
    """Return the named axes in scope, outermost first."""
    trace = current_trace()
    return () if trace is None else tuple(trace.axes.values())


def named_axis(name: str, what: str) -> Axis:
    """Return the axis of a name. Raises UnboundAxis."""
    trace = current_trace()
    found = None if trace is None else trace.axes.get(name)
    if found is None:
        raise unbound_axis(name, what, axes_in_scope(), BIND_IT.format(name))
    return found

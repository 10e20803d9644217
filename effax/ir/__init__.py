"""Programs as values: types, syntax, primitives; print, parse, check, trace, evaluate."""

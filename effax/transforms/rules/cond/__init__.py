"""The rules of ``cond``, one module a transformation."""

"""The rules of ``while``, one module a transformation."""

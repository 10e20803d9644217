"""The rules of ``scan``, one module a transformation."""

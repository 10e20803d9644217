"""Rules of ``while``, one module a transformation."""

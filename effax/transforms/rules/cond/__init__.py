"""Rules of ``cond``, one module for each transformation."""

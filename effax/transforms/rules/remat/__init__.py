"""Rules of ``remat``, ``name`` and ``optimization_barrier``."""

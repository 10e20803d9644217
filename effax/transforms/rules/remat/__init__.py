"""Rules of ``remat``: calls that are computed again, names, barriers."""

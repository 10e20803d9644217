"""Checkpoints: trees of arrays and references in files, of which each process writes its parts."""

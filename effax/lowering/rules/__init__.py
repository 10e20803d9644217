"""Lowering rules, from primitives to StableHLO, by family."""

"""How each primitive is written in StableHLO, by family."""

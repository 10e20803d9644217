"""From an effect-free jaxpr to StableHLO, to an executable, to results on a device."""

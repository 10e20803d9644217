"""A sweep of the lowering for programs that end the process or that XLA refuses."""

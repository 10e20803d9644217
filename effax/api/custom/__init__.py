"""Functions that bring rules of their own, for derivatives and for batching."""

"""Functions with custom rules for derivatives and for batching."""

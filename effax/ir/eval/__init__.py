"""The reference evaluator on NumPy: one device, several devices, checked arguments."""

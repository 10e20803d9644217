"""The building blocks of passes: rules, rewriters, propagation, and the forms of a pass."""

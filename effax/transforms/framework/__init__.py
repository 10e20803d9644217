"""What every pass is built from: rules, templates, propagation, the boundary of a pass."""

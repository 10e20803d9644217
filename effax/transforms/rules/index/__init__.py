"""Rules of indexed reads and updates. Their transposes access the indexed part only."""

"""Rules of calls with custom rules, one module for each transformation."""

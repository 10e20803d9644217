"""Programs as text and JSON: lexer, parser, printer."""

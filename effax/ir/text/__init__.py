"""Text and JSON forms of programs: lexer, parser, printer."""

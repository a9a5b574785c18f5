"""Files: bytes, lines, tables and JSON in and out, and what keeps them whole."""

"""The command line: one module per command, plus shared options, option types and shell handling."""

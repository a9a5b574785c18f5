"""The command line: one module a command, `options` that they share, `types` of values, `shell` around them all."""

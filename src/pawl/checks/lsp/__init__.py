"""A client for language servers: diagnostics and code actions, asked on a bench with a limit."""

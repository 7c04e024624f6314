"""A client for language servers: diagnostics and code actions, asked on a bench and never waited for without end."""

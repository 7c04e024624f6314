"""Asking models: wire formats, the router, prices, the ledger, scripts."""

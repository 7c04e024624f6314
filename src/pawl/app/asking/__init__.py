"""Asking models on behalf of the user: which one, within which budget, with which tools."""

"""Candidate edits for diagnostics: one module per family of recoveries, all pure."""

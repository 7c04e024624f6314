"""Candidate edits for findings: one module per family of recoveries, all pure."""

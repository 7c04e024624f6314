"""Guardrail presets as data."""

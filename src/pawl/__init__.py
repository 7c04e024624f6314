"""Pawl changes code with agents and never lets a change slip back."""

__version__ = "0.1.0"

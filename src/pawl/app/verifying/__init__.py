"""Verification of a workspace: the ladder that its files call for, with what the user configures about it."""

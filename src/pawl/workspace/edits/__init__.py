"""Edits as pure functions from bytes to bytes: nothing here touches a file, and nothing is applied by guessing."""

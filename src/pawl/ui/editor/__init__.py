"""Pawl in an editor, over the Agent Client Protocol."""

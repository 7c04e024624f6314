"""What the user wishes of an undo, a redo or a restore, and what came of it."""

from __future__ import annotations

from pawl.workspace.history import OnConflict, Reversal, Wish

__all__ = ["OnConflict", "Reversal", "Wish"]

"""How an interface asks what is under way to stop."""

from __future__ import annotations

from pawl.sandbox.cancel import CancelToken

__all__ = ["CancelToken"]

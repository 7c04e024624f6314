"""SQLite: blobs, events, journal and history in one file of a private state directory."""

from pawl.store.store import Store

__all__ = ["Store"]

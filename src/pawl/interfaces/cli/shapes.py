"""Values as JSON: the same shape from whichever command they come."""

from __future__ import annotations

import base64
import json
import os
import re

from pawl.core.change import ChangeSet, Node
from pawl.core.history import Checkpoint, Entry
from pawl.core.patch import summary
from pawl.core.ports import BlobReader

Json = dict[str, object]
_NOT_TEXT = re.compile("[\ud800-\udfff]")


def as_json(body: object) -> str:
    """One line that every reader of JSON takes."""
    return json.dumps(_as_text(body), default=str)


def changes_json(changes: ChangeSet, blobs: BlobReader) -> list[Json]:
    return [
        {
            **path_json(change.path),
            "what": row.what,
            "before": _node(change.before),
            "after": _node(change.after),
            "added": row.added,
            "removed": row.removed,
            "binary": row.binary,
        }
        for change, row in zip(changes, summary(changes, blobs), strict=True)
    ]


def path_json(path: str) -> Json:
    """A path, and where it is not UTF-8 its bytes as well."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return {"path": path, "path_base64": base64.b64encode(os.fsencode(path)).decode()}
    return {"path": path}


def entry_json(entry: Entry) -> Json:
    return {
        "id": entry.id,
        "run": entry.run,
        "kind": entry.kind,
        "title": entry.title,
        "reason": entry.reason,
        "created": entry.created,
        "state": entry.state,
        "paths": entry.files,
        "reverses": entry.reverses,
        "reversed_by": entry.reversed_by,
        "pruned": entry.pruned,
    }


def checkpoint_json(one: Checkpoint) -> Json:
    return {
        "id": one.id,
        "name": one.name,
        "created": one.created,
        "after_entry": one.after_entry,
        "changes": [change.path for change in one.changes],
        "progress": dict(one.progress),
        "verification": dict(one.verification),
        "policy": {
            "automatic_on_error": one.policy.automatic_on_error,
            "depth": one.policy.depth,
            "preserve_user_edits": one.policy.preserve_user_edits,
        },
    }


def _node(node: Node | None) -> Json | None:
    return None if node is None else {"kind": node.kind, "mode": f"{node.mode:o}"}


def _as_text(value: object) -> object:
    """Names that are not UTF-8 have their odd bytes written out, such as `caf\\xe9`."""
    match value:
        case str():
            return _NOT_TEXT.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", str(value))
        case dict():
            return {key: _as_text(one) for key, one in value.items()}
        case list() | tuple():
            return [_as_text(one) for one in value]
        case _:
            return value

"""What retention lets go: the changes of old entries, whose line in the history stays, and old conversations whole.

Memories stay until the user forgets them.
"""

from __future__ import annotations

from pawl.core.history import Retention
from pawl.store.database import Database
from pawl.store.rows import iso

_DAY = 86_400

# `later` counts, for each path of an entry, the finished entries of its workspace that touch the path after it.
# A young checkpoint needs every entry after its own place in the history.
_PRUNABLE = """
WITH later AS (
    SELECT
        entry_change.entry AS entry,
        coalesce(
            sum(entry.state = 'done') OVER (
                PARTITION BY entry.workspace, entry_change.path ORDER BY entry_change.entry DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0
        ) AS touched
    FROM entry_change JOIN entry ON entry.id = entry_change.entry
)
SELECT id FROM entry
WHERE pruned = 0 AND created < :cutoff AND (
    state = 'captured'
    OR (
        state <> 'prepared'
        AND id NOT IN (SELECT entry FROM later WHERE touched < :backups)
        AND NOT EXISTS (
            SELECT 1 FROM checkpoint
            WHERE checkpoint.workspace = entry.workspace AND checkpoint.created >= :cutoff
                AND checkpoint.after_entry < entry.id
        )
    )
)
"""


def drop_expired(database: Database, retention: Retention, now: float) -> int:
    """Drops what may go; returns how many entries lost their changes.

    A conversation goes when nothing was said in it since: half of one could not be taken up again.
    """
    cutoff = iso(max(0.0, now - retention.days * _DAY))
    with database.transaction():
        found = database.rows(_PRUNABLE, {"cutoff": cutoff, "backups": retention.backups})
        database.run_many("DELETE FROM entry_change WHERE entry = ?", found)
        database.run_many("DELETE FROM entry_mode WHERE entry = ?", found)
        database.run_many("UPDATE entry SET pruned = 1 WHERE id = ?", found)
        database.run(
            "DELETE FROM said WHERE conversation IN"
            " (SELECT conversation FROM said GROUP BY conversation HAVING max(time) < ?)",
            (cutoff,),
        )
        for table, moment in (("snapshot", "time"), ("answer", "created"), ("known_file", "seen")):
            database.run(f"DELETE FROM {table} WHERE {moment} < ?", (cutoff,))
    return len(found)

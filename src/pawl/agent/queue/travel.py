"""Parcels between the machines of a queue: a workspace as a change set over nothing, a run as its durable record.

A run that is carried away from its workspace stops before it would touch it; its record goes home, where its change is
rebased, verified again and promoted. Secrets stay at home: files that hold keys, files that the rules hide from models
and files in which a secret value stands are left out.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pawl.agent.queue.server_queue import ServerQueue
from pawl.agent.record import RunData, RunRecord
from pawl.agent.routes import RunNode
from pawl.code.librarian import source_files
from pawl.core.change import BlobStore, Node, NodeKind, blob_digest
from pawl.core.diagnostic import Verdict
from pawl.core.errors import Refused, StoreCorrupt, TooLarge
from pawl.core.job import Job
from pawl.core.redact import without_known
from pawl.core.run import RunCursor, RunState
from pawl.settings.config import Config
from pawl.store.store import Store
from pawl.workspace.git import GitEntry
from pawl.workspace.project import Project
from pawl.workspace.transplant import SUBMODULE, Transplant, head_of, object_name, planted, settled
from pawl.workspace.transplant import nodes as grown

LARGEST = 64 << 20
"""Bytes of a parcel; a larger workspace stays at home."""
_LARGEST_PROGRESS = 8 << 20
"""The same while a run works: on a slow line more would hold up the heartbeats."""
_HEAD = "parcel.json"


def sent(shop: Project, queue: ServerQueue) -> str:
    """Put the workspace as it stands now onto the server, once; its digest, empty where it is too large to travel."""
    gate, blobs = shop.read_gate(), shop.store.blobs
    paths = [one.path for one in source_files(shop).stamps()]
    shown = [path for path in paths if gate.shows(path) and not shop.guardrails.is_secret(path)]
    commit, held = _commit(shop)
    committed = {path for path, (mode, _) in (commit or {}).get("entries", {}).items() if mode != SUBMODULE}
    found = shop.promoter.nodes({*shown, *committed}, frozenset())
    nodes = {path: node for path, node in found.items() if node is not None and not _holds_secret(node, blobs)}
    try:
        head = {"nodes": {path: _plain(node) for path, node in nodes.items()}, "commit": commit}
        data = _packed(head, _names((*nodes.values(), *held)), blobs)
    except TooLarge:
        return ""
    digest = blob_digest(data)
    with queue.server.transaction():
        sql = "INSERT INTO pawl_snapshot (digest, data) VALUES (%s, %s) ON CONFLICT DO NOTHING"
        queue.server.rows(sql, (digest, data))
    return digest


def _as_sent(queue: ServerQueue, job: Job) -> bytes:
    """The workspace of the job."""
    with queue.server.transaction():
        sql = "SELECT s.data FROM pawl_snapshot AS s JOIN pawl_job AS j ON j.snapshot = s.digest WHERE j.id = %s"
        return bytes(queue.server.rows(sql, (job.id,))[0]["data"])


def _from_elsewhere(queue: ServerQueue, job: Job) -> bytes | None:
    """The run of the job as far as another machine has carried it last; None where none has."""
    with queue.server.transaction():
        row = queue.server.first(
            "SELECT p.data FROM pawl_job AS j JOIN pawl_progress AS p ON p.job = j.id AND p.run = %s"
            " WHERE j.id = %s AND j.carrier NOT IN ('', %s)",
            (job.run, job.id, queue.home),
        )
    return None if row is None else bytes(row["data"])


def _commit(shop: Project) -> tuple[dict[str, Any] | None, list[Node]]:
    """The commit that HEAD names, with its contents as nodes, so that what is not committed is that there too. None
    where something in it stays at home: without it, it would be another commit."""
    found = head_of(shop)
    if found is None:
        return None, []
    plant, contents = found
    gate = shop.read_gate()
    if not all(gate.shows(path) and not shop.guardrails.is_secret(path) for path in plant.entries):
        return None, []
    held = list(grown(plant, contents, shop.store.blobs).values())
    if any(_holds_secret(node, shop.store.blobs) for node in held):
        return None, []
    rows = {path: [one.mode, one.name] for path, one in plant.entries.items()}
    text = plant.text.decode("utf-8", "surrogateescape")
    return {"commit": plant.commit, "branch": plant.branch, "text": text, "entries": rows}, held


def _plant(folder: Path, commit: Mapping[str, Any] | None, contents: Iterable[bytes]) -> None:
    """Make the copy the repository that it is at home."""
    if commit is None or (folder / ".git").exists():
        return
    entries = {path: GitEntry(str(mode), str(name)) for path, (mode, name) in commit["entries"].items()}
    text = commit["text"].encode("utf-8", "surrogateescape")
    plant = Transplant(commit=commit["commit"], branch=commit["branch"], text=text, entries=entries)
    planted(folder, plant, {object_name(content, plant.commit): content for content in contents})


def _holds_secret(node: Node, blobs: BlobStore) -> bool:
    if node.blob is None:
        return False
    text = blobs.get(node.blob).decode("utf-8", "surrogateescape")
    return without_known(text) != text


def workspace_of(config: Config, queue: object, job: Job) -> Path:
    """Where the job is worked on here: in its workspace, or on a copy of it where that is on another machine."""
    if not isinstance(queue, ServerQueue) or job.home == queue.home:
        return Path(job.workspace)
    folder = config.state / "away" / f"{job.queue.partition('/')[0]}-{job.id}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with Project.open(config, folder) as shop:
        if not shop.entries(limit=1):
            head, contents = _unpacked(_as_sent(queue, job))
            for content in contents:
                shop.store.blobs.put(content)
            try:
                nodes = {str(path): _node(node) for path, node in head["nodes"].items()}
                _plant(folder, head.get("commit"), contents)
            except _MALFORMED as error:
                raise _damaged(error) from error
            settled(shop, f"job {job.id} as it was sent", nodes)
    return folder


def sweep_copies(config: Config, queue: object) -> None:
    """Take away the copies of workspaces on which nothing is done here any more."""
    folder = config.state / "away"
    if not isinstance(queue, ServerQueue) or not folder.is_dir():
        return
    with queue.server.transaction():
        name = queue.server.rows("SELECT name FROM pawl_queue")[0]["name"]
        busy = "SELECT id FROM pawl_job WHERE state = 'running' OR (state <> 'ended' AND carrier = %s)"
        kept = {f"{name}-{one['id']}" for one in queue.server.rows(busy, (queue.home,))}
    for copy in folder.iterdir():
        if copy.name.rpartition("-")[0] == name and copy.name not in kept:
            shutil.rmtree(copy, ignore_errors=True)


def progress(store: Store, run: str, largest: int = LARGEST) -> bytes:
    """The record of a run as far as it is durable by now, with the contents that it names."""
    record = store.runs.exported(run)
    names = {blob for rows in record["work"].values() for row in rows for blob in (row[3], row[6]) if blob}
    return _packed(record, names, store.blobs, largest)


def tell_progress(queue: object, store: Store, job: Job, told: tuple[object, ...]) -> tuple[object, ...]:
    """Let the server know how far the run of the job is, where that is more than `told`; returns what it knows then."""
    if not isinstance(queue, ServerQueue) or not queue.is_due():
        return told
    run = queue.get(job.id).run
    far = (run, *store.runs.progress(run)) if run else ()
    if run and far != told and store.runs.state(run) is not RunState.ENDED:
        with suppress(TooLarge):
            queue.keep_progress(job.held, run, progress(store, run, _LARGEST_PROGRESS))
    return far


def arrive(shop: Project, queue: object, job: Job) -> str | None:
    """The run of the job, which another machine has begun, to go on with here; None where there is none."""
    known = job.run if job.run and shop.store.runs.state(job.run) is not None else None
    if not isinstance(queue, ServerQueue) or job.run is None:
        return known
    if known and not queue.is_of(job.held, known):
        raise Refused(f"the run {known} is not one of job {job.id}", advice="cancel the job")
    if known and shop.entries(run=known):
        # It was promoted here, and its machine died before it could tell.
        return known
    data = _from_elsewhere(queue, job)
    if data is None:
        return known
    head, contents = _unpacked(data)
    try:
        with shop.store.together():
            for content in contents:
                shop.store.blobs.put(content)
            shop.store.runs.imported(shop.workspace, _place(job.run, head["run"]), job.order, head)
            queue.mark(job.held, job.run)
            record = RunRecord(shop, job.order, job.run)
            verdict = record.data.verdict if record.data.verdict is Verdict.FAILED else None
            record.keep(replace(record.data, **_OWN, verdict=verdict))
    except _MALFORMED as error:
        raise _damaged(error) from error
    return job.run


def _place(run: str, row: Mapping[str, Any]) -> RunCursor:
    """Where the run stands; where it says that its change was approved or promoted, it is to be delivered."""
    at, task, attempt = RunNode(row["node"]), row["task"], row["attempt"]
    if type(task) is not int or type(attempt) is not int:
        raise ValueError("a run stands nowhere")
    return RunCursor(run, RunNode.DELIVER if at in _SETTLED else at, task, attempt)


_SETTLED = frozenset({RunNode.APPROVE, RunNode.APPLY, RunNode.EVALUATE, RunNode.END})
_OWN_NAMES = (
    "verified verdicts evidence witnessed own_only baseline ground rechecks unproved before after"
    " question response decision permits rulings granted stale entry kept base commit exit_code"
)
_OWN: dict[str, Any] = {name: getattr(RunData(), name) for name in _OWN_NAMES.split()}
"""The word of another machine is not taken for these: what proves a change, what the user answered, what was promoted.
Everything is verified again where it is promoted."""
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, LookupError, RecursionError, sqlite3.IntegrityError)
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, *_MALFORMED)


def _damaged(error: Exception) -> StoreCorrupt:
    return StoreCorrupt(f"the data of the job cannot be read: {error!r}"[:300], advice="retry the job")


def _packed(head: Mapping[str, Any], names: Iterable[str], blobs: BlobStore, largest: int = LARGEST) -> bytes:
    room, size = io.BytesIO(), 0
    with zipfile.ZipFile(room, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as parcel:
        parcel.writestr(_info(_HEAD), json.dumps(head, sort_keys=True))
        for name in sorted(set(names)):
            content = blobs.get(name)
            size += len(content)
            if size > largest:
                raise TooLarge(f"more than {largest >> 20} MB would be sent", advice="it runs on this machine")
            parcel.writestr(_info(name), content)
    return room.getvalue()


def _info(name: str) -> zipfile.ZipInfo:
    """Without a time, so that the same content has the same digest."""
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


def _unpacked(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The head, and the contents, each as its name says."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parcel:
            if sum(one.file_size for one in parcel.infolist()) > 4 * LARGEST:
                raise StoreCorrupt("the data of the job is too large", advice="retry the job")
            head = json.loads(parcel.read(_HEAD))
            contents = {name: parcel.read(name) for name in parcel.namelist() if name != _HEAD}
    except _UNREADABLE as error:
        raise _damaged(error) from error
    if any(blob_digest(content) != name for name, content in contents.items()):
        raise StoreCorrupt("the data of the job is damaged", advice="retry the job")
    return head, list(contents.values())


def _names(nodes: Iterable[Node]) -> set[str]:
    return {node.blob for node in nodes if node.blob}


def _plain(node: Node) -> list[Any]:
    return [node.kind.value, node.blob, node.mode]


def _node(words: list[Any]) -> Node:
    kind, blob, mode = words
    return Node(NodeKind(kind), blob, mode)

"""The PostgreSQL server of a queue, and procrastinate on it: the engine that keeps tickets, leases and heartbeats.

The engine works through the same connection, so that what it does to a ticket and what Pawl does to the job become
durable as one step. Both are imported when a queue on a server is used, and never otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from importlib import resources
from typing import TYPE_CHECKING, Any

from pawl.core.errors import ConfigError, QueueUnreachable, StoreError, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted, register
from pawl.settings.installation import with_extra

if TYPE_CHECKING:
    import psycopg
    from procrastinate.manager import JobManager

SCHEMES = ("postgres://", "postgresql://")
VERSION = 3
_UPGRADES = {
    1: "ALTER TABLE pawl_queue ADD COLUMN dead_seconds double precision, ADD COLUMN engine text",
    2: "DROP INDEX pawl_job_turn;CREATE INDEX pawl_job_open ON pawl_job (home, workspace, turn) WHERE state <> 'ended'",
}
"""From each earlier form of Pawl's own tables to the next."""
_SETUP = 0x7061776C
"""The advisory lock under which the tables are made."""
_TERMS: dict[str, Any] = {
    "connect_timeout": 5,
    "application_name": "pawl",
    "tcp_user_timeout": 10_000,
    # A worker that is stopped in the middle of a step must not hold up the others.
    # A worker that is stopped in the middle of a step must not hold up the others; and plans are made anew, since
    # one that was made when the tables were small sorts all tickets for each claim.
    "options": "-c idle_in_transaction_session_timeout=10s -c lock_timeout=5s -c statement_timeout=60s"
    " -c plan_cache_mode=force_custom_plan -c jit=off",
}


@dataclass(slots=True)
class QueueServer:
    """One connection, for one thread; opened again by itself where the server was restarted."""

    url: str = field(repr=False)
    password: str = field(default="", repr=False)
    shown: str = ""
    """The address without its password, for people."""
    engine: JobManager = field(init=False)
    _connection: psycopg.Connection[Any] | None = None

    @classmethod
    def at(cls, url: str, password: str) -> QueueServer:
        """The server of that address; nothing is connected yet."""
        try:
            import procrastinate  # noqa: F401
            from psycopg import ProgrammingError
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise ConfigError(
                "a queue on a server needs packages that are not installed", advice=with_extra("queue")
            ) from error
        if not url.startswith(SCHEMES):
            raise UsageError(
                "the queue is not the address of a PostgreSQL server", advice="postgres://USER@HOST/DATABASE"
            )
        try:
            parts = conninfo_to_dict(url)
        except ProgrammingError as error:
            raise UsageError(
                "the address of the queue cannot be read", advice="postgres://USER@HOST/DATABASE"
            ) from error
        secret = password or str(parts.get("password") or "")
        register(secret, url)
        place = f"{parts.get('host') or 'localhost'}{':' if parts.get('port') else ''}{parts.get('port') or ''}"
        return cls(url, secret, f"{place}/{parts.get('dbname') or ''}")

    def again(self) -> QueueServer:
        """Another connection to it, for another thread."""
        return QueueServer(self.url, self.password, self.shown)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            from psycopg import Error

            with suppress(Error):
                connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and durable at the end; inside another transaction, a part of it. `QueueUnreachable` where
        the server does not answer, or not in time: then it may have become durable or not."""
        from procrastinate.exceptions import ConnectorException
        from psycopg import Error, InterfaceError, OperationalError

        try:
            with self._opened().transaction():
                yield
        except (Error, ConnectorException) as error:
            cause = error.__cause__ if isinstance(error, ConnectorException) else error
            lost = self._connection is None or self._connection.closed
            if lost:
                self.close()
            if lost or isinstance(cause, OperationalError | InterfaceError):
                raise self._unreachable(str(cause)) from error
            raise StoreError(
                f"the queue on {self.shown} refuses: {_said(cause)}",
                advice="is the database one of Pawl's own, and may its user make and change tables there?",
            ) from error

    def rows(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[dict[str, Any]]:
        """Of a query, inside a transaction."""
        assert self._connection is not None
        cursor = self._connection.execute(sql, values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def first(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> dict[str, Any] | None:
        found = self.rows(sql, values)
        return found[0] if found else None

    def many(self, sql: str, rows: Sequence[Any], *, returns: bool = False) -> list[dict[str, Any]]:
        """The statement for each row, in one go; the first row that each gives back, where it `returns` one."""
        assert self._connection is not None
        cursor = self._connection.cursor()
        cursor.executemany(sql, rows, returning=returns)
        return [one for result in cursor.results() if (one := result.fetchone()) is not None] if returns else []

    def drop_ticket(self, ticket: int) -> None:
        """The engine has nothing more to do for it."""
        from procrastinate.jobs import Status

        now(self.engine.finish_job_by_id_async(job_id=ticket, status=Status.SUCCEEDED, delete_job=True))

    def _opened(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            import psycopg
            from psycopg.rows import dict_row

            secret: dict[str, Any] = {"password": self.password} if self.password else {}
            try:
                connection = psycopg.connect(self.url, autocommit=True, row_factory=dict_row, **_TERMS, **secret)
            except psycopg.OperationalError as error:
                if re.search("authentication failed|password|does not exist|no pg_hba", str(error)):
                    raise ConfigError(
                        f"the server of the queue on {self.shown} refuses: {_said(error)}",
                        advice="its user and database are part of the address, the password is in PAWL_QUEUE_PASSWORD",
                    ) from error
                raise self._unreachable(str(error)) from error
            self._connection, self.engine = connection, _engine(connection)
            self._set_up(connection)
        return self._connection

    def _unreachable(self, why: str) -> QueueUnreachable:
        return QueueUnreachable(
            f"the queue on {self.shown} does not answer: {_said(why)}",
            advice="is the server up, and the address right? Running jobs continue when it is back",
        )

    def _set_up(self, connection: psycopg.Connection[Any]) -> None:
        """The tables, where this is the first use of the database."""
        from procrastinate.schema import SchemaManager

        if connection.execute("SELECT to_regclass('pawl_queue') AS there").fetchone()["there"] is None:  # type: ignore[index]
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP,))
                there = "SELECT to_regclass('pawl_queue') AS ours, to_regclass('procrastinate_jobs') AS theirs"
                found = connection.execute(there).fetchone()
                assert found is not None
                if found["theirs"] is None:
                    connection.execute(SchemaManager.get_schema())
                if found["ours"] is None:
                    own = (resources.files("pawl.agent.queue") / "server_queue.sql").read_text("utf-8")
                    connection.execute(own)
        version = self._version(connection)
        if version > VERSION:
            raise ConfigError("this queue was set up by a newer Pawl", advice="upgrade Pawl on this machine")
        if version < VERSION:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP,))
                for number in range(self._version(connection), VERSION):
                    connection.execute(_UPGRADES[number])
                connection.execute("UPDATE pawl_queue SET version = %s", (VERSION,))
        self._check_engine(connection)

    def _version(self, connection: psycopg.Connection[Any]) -> int:
        found = connection.execute("SELECT version FROM pawl_queue").fetchone()
        assert found is not None
        return int(found["version"])

    def _check_engine(self, connection: psycopg.Connection[Any]) -> None:
        """The engine's tables are those of its version, which is pinned: another one would read them wrongly."""
        from importlib.metadata import version

        here = version("procrastinate")
        connection.execute("UPDATE pawl_queue SET engine = %s WHERE engine IS NULL", (here,))
        made = connection.execute("SELECT engine FROM pawl_queue").fetchone()["engine"]  # type: ignore[index]
        if made != here:
            raise ConfigError(
                f"this queue was set up with procrastinate {made}, and {here} is installed here",
                advice="use the same version of Pawl on all machines",
            )


def _said(why: object) -> str:
    return redacted(" ".join(str(why).split()))


def now(answer: Coroutine[Any, Any, Any]) -> Any:
    """The result of a call to the engine, whose connection never waits for anything else."""
    try:
        answer.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the engine waits")


def _engine(connection: psycopg.Connection[Any]) -> JobManager:
    from procrastinate import SyncPsycopgConnector
    from procrastinate.manager import JobManager

    class OneConnection(SyncPsycopgConnector):
        """Stands for a pool, and answers at once where the engine would wait."""

        @contextmanager
        def connection(self) -> Iterator[Any]:
            yield connection

        async def execute_query_async(self, query: Any, **arguments: Any) -> None:
            self.execute_query(query, **arguments)

        async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
            return self.execute_query_one(query, **arguments)

        async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
            return self.execute_query_all(query, **arguments)

    own = OneConnection()
    own.open(own)  # type: ignore[arg-type]
    return JobManager(own)

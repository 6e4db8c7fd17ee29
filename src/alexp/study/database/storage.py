"""The database behind studies: one URL, short transactions, errors that say what happened to the data."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine

from alexp.study.database.addresses import DEFAULT, parse_url, scrub, without_secrets
from alexp.study.database.schema import VERSION, VERSION_TABLE, studies
from alexp.study.errors import StorageError, UnknownOutcomeError
from alexp.study.workers.forking import Forked, Transactions, watch

_WRITE = "alexp_write"
_ONE_MOMENT = {"isolation_level": "REPEATABLE READ"}  # PostgreSQL would else look at a new moment in every statement
_CREATION_LOCK = 4_274_051_867  # any number, the same for everybody
_VANISHED = 300_000  # ms after which PostgreSQL takes the lock from a host that went away while it held it
_IDLE = 1.0  # seconds after which a connection is tried before it is used
_SMALL_CACHE = -16_000  # KiB of page cache per SQLite connection
_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}  # notice a line that is dead
_MISSING = re.compile(r"no such (table|column)|has no column|(relation|column) .* does not exist")
_DAMAGED = ("malformed", "not a database", "corrupt", "unsupported file format", "decode", "duplicate column")
_HELP = (
    "Restore it from a backup, copy what is intact with `alexp study salvage SOURCE TARGET`, or recover what is left "
    "of a file with `sqlite3 FILE .recover`"
)

_inherited: list[Engine | None] = []  # from the parent process: kept, because letting go of them would close them
_torn_files: set[str] = set()  # of which this process has inherited an open transaction


class Storage(Forked):
    """A SQLite file or a PostgreSQL database that holds any number of studies.

    SQLite runs in WAL mode with a full sync at every commit: what was acknowledged survives a crash of the
    process and of the machine. A writer takes the file's only write lock at the start of its transaction, so
    that two processes queue up instead of failing half-way. On PostgreSQL the writer locks the study's row.

    Parameters
    ----------
    url
        `sqlite:///file.db` (or just a path), or `postgresql://user:password@host/database`.
    timeout
        Seconds to wait for other writers before giving up.
    """

    def __init__(self, url: str | URL | Path = DEFAULT, timeout: float = 60.0) -> None:
        self.url, self._hidden = without_secrets(parse_url(url))
        self.timeout = timeout
        self._engine: Engine | None = None
        self._checked = False
        self._transactions, self._is_quiet = Transactions(), True
        watch(self)

    @property
    def is_sqlite(self) -> bool:
        """Whether the storage is a file on this host."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def path(self) -> Path | None:
        """The SQLite file, None for a server."""
        return Path(self.url.database) if self.is_sqlite and self.url.database else None

    @property
    def _file(self) -> str:
        return "" if self.path is None else os.path.realpath(self.path)

    @property
    def engine(self) -> Engine:
        """Connections of this process."""
        if _torn_files and self._file in _torn_files:
            raise StorageError(
                f"this process was forked in the middle of a transaction on {self.describe()} and cannot use the file: "
                "fork before the study is used by threads, or start workers with multiprocessing's 'spawn'"
            )
        engine = self._engine  # looked at once: another thread may close it meanwhile
        if engine is None:
            engine = self._engine = self._connect()
        return engine

    def _connect(self) -> Engine:
        if not self.is_sqlite:
            limits = f"-c lock_timeout={int(1000 * self.timeout)} -c idle_in_transaction_session_timeout={_VANISHED}"
            more = {"options": limits} | _ALIVE | self._hidden
            server = sa.create_engine(self.url, pool_size=2, connect_args=more)
            event.listen(server, "checkout", _check_idle)
            return server
        engine = sa.create_engine(self.url, connect_args={"timeout": self.timeout, "check_same_thread": False})
        event.listen(engine, "do_connect", self._create_private)
        event.listen(engine, "connect", self._prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _create_private(self, *_: Any) -> None:
        """A new file is for its owner only; SQLite gives the files beside it the same mode."""
        if self.path is not None and not self.path.exists():
            with suppress(OSError):  # SQLite will say what is wrong
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def _prepare_sqlite(self, connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions by itself
        deadline = time.monotonic() + self.timeout
        while True:
            try:  # the switch to WAL asks for an exclusive lock without waiting for it
                connection.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA cache_size={_SMALL_CACHE}")

    def close(self) -> None:
        """Close all connections; they open again when needed."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    # -- forking -----------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Leave nothing open that a child must not inherit: see `workers.forking`."""
        if self.is_sqlite:
            self._is_quiet = self._transactions.halt(self.timeout + 1.0)
            if self._is_quiet:
                self.close()

    def after_fork(self, in_child: bool) -> None:
        """The parent goes on; the child neither uses nor closes what its parent has open."""
        if not in_child:
            self._transactions.resume()
            return
        if not self._is_quiet:
            _torn_files.add(self._file)
        _inherited.append(self._engine)
        self._engine, self._transactions = None, Transactions()

    # -- transactions ------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one consistent moment of the database."""
        with self._transaction(write=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of the block, or rolled back if the block raises."""
        with self._transaction(write=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, write: bool) -> Iterator[Connection]:
        options: dict[str, Any] = {_WRITE: write}
        committing = False
        if not (write or self.is_sqlite):
            options |= _ONE_MOMENT
        try:
            with (
                self._transactions.one(),
                self.engine.connect().execution_options(**options) as connection,
                connection.begin(),
            ):
                yield connection
                committing = write
        except sa.exc.DBAPIError as error:
            text = str(error)
            cause = error if self._scrub(text) == text else None
            if committing:  # the answer, or the commit itself, may have been lost
                raise UnknownOutcomeError(f"{self.describe()} failed during a commit: {self._reason(error)}") from cause
            raise StorageError(self._explain(error, write)) from cause
        except UnicodeDecodeError as error:  # SQLite itself quotes what it cannot make sense of
            raise StorageError(f"{self.describe()} is damaged: it holds text that is none. {_HELP}") from error
        except ModuleNotFoundError as error:
            raise StorageError(f"{error}; studies on PostgreSQL need `pip install alexp[postgres]`") from error

    def _explain(self, error: sa.exc.DBAPIError, write: bool) -> str:
        reason, where = self._reason(error), self.describe()
        text, unchanged = reason.lower(), ". Nothing was changed" if write else ""  # by a transaction with no commit
        if "full" in text or "no space left" in text or "disk i/o error" in text:
            verb = "write to" if write else "read"
            return f"could not {verb} {where}: {reason}{unchanged}; free some space and try again"
        if "readonly" in text or "read-only" in text:
            return f"{where} cannot be written to (read-only): {reason}{unchanged}"
        if _MISSING.search(text):
            return f"{where} is damaged, a table or a column is missing or has another name: {reason}. {_HELP}"
        if any(word in text for word in _DAMAGED):
            return f"{where} is damaged or not a database: {reason}. {_HELP}"
        if "locked" in text or "lock timeout" in text:
            return f"{where} was busy for more than {self.timeout:g} s: {reason}{unchanged}; try again"
        if "unable to open" in text:
            return f"cannot open {where}: {reason}. Does its folder exist, and may you read and write there?"
        return f"the database {where} did not answer as it should: {reason}{unchanged}"

    def _reason(self, error: sa.exc.DBAPIError) -> str:
        return " ".join(self._scrub(str(error.orig)).split()) or type(error.orig).__name__

    def _scrub(self, text: str) -> str:
        return scrub(text, self.url, self._hidden)

    def describe(self) -> str:
        """The storage in words, without a password."""
        return str(self.path) if self.path is not None else self.url.render_as_string(hide_password=True)

    def __repr__(self) -> str:
        return f"Storage({self.describe()!r})"

    def lock(self, connection: Connection) -> None:
        """Until the commit, let nobody else create tables or studies. A writer on SQLite has that right anyway."""
        if not self.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))

    # -- schema ------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether there is a database with study tables; creates nothing."""
        if self.path is not None and not self.path.exists():
            return False
        with self.reading() as connection:
            return _version(connection) is not None

    def prepare(self) -> None:
        """Create the tables, or bring those of an older version up to date. Cheap when there is nothing to do."""
        if self._checked:
            return
        with self.reading() as connection:
            found = _version(connection)
        if found != VERSION:
            try:
                self._migrate()
            except UnknownOutcomeError:
                self._migrate()  # does nothing if it was done
        self._checked = True

    def _migrate(self) -> None:
        with self.writing() as connection:
            self.lock(connection)
            found = _version(connection)  # another process may have been faster
            if found != VERSION:
                migrate(connection, found, self.describe())


def migrate(connection: Connection, found: str | None, where: str) -> None:
    """Apply all missing migrations inside the connection's transaction."""
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise StorageError(
            f"{where} has version {found} of the study tables; this library knows up to {VERSION}. "
            "It was written by a newer version: install that one"
        )
    command.upgrade(config, "head")


def _version(connection: Connection) -> str | None:
    inspector = sa.inspect(connection)
    # In this order: another process may create both, in one transaction, between the two questions.
    has_studies = inspector.has_table(studies.name)
    if not inspector.has_table(VERSION_TABLE):
        if has_studies:
            raise StorageError(f"the database has study tables but no table {VERSION_TABLE} of their version. {_HELP}")
        return None
    rows = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalars().all()
    if len(rows) != 1 and (rows or has_studies):
        raise StorageError(f"the database has study tables but {len(rows)} records of their version. {_HELP}")
    return str(rows[0]) if rows else None


def _check_idle(connection: Any, record: Any, _proxy: Any) -> None:
    """Replace a connection that died while it lay idle; one that was just in use is not asked, to save the time."""
    now = time.monotonic()
    if now - record.info.get("used", now) > _IDLE:
        try:
            connection.execute("SELECT 1")
            connection.rollback()
        except Exception as error:
            raise sa.exc.DisconnectionError from error
    record.info["used"] = now


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

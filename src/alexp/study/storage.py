"""Storage: the database of studies, its tables and their version, its URL, transactions and errors."""

from __future__ import annotations

import ctypes
import os
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import sqlalchemy as sa
from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)
from sqlalchemy.engine import URL, Connection, Engine, make_url

from alexp.common.memory import OutOfMemoryError, is_lack_of_memory, out_of_memory
from alexp.study.errors import StorageError, UnknownOutcomeError, damaged
from alexp.study.forking import Forked, watch
from alexp.study.openfile import Condition, Inode, OpenFile, inode_of

# -- tables ----------------------------------------------------------------------------------------------------

VERSION = 1  # of the tables below; when they change, add 1 and a step to `UPGRADES`
VERSION_TABLE = "alexp_version"
# Steps from older versions of the tables: UPGRADES[k] changes tables of version k into those of version k + 1, in one
# transaction. There is one version so far.
UPGRADES: dict[int, Callable[[Connection], None]] = {}

metadata = MetaData()

versions = Table(VERSION_TABLE, metadata, Column("version", Integer, primary_key=True))  # one row

studies = Table(
    "alexp_studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("algorithm", String(100), nullable=False),
    Column("settings", Text, nullable=False),  # JSON
    Column("entropy", Text, nullable=False),  # seed of all randomness, a whole number of up to 128 bits
    Column("problem", Text, nullable=False),  # JSON; arrays are references to alexp_arrays
    Column("probe", Text, nullable=False),  # JSON: fingerprint and sketch of the features
    Column("library", String(50), nullable=False),
    Column("created_at", Double, nullable=False),  # seconds since 1970, UTC
    Column("n_events", Integer, nullable=False),
    Column("snapshot_at", Integer, nullable=False),  # events in the newest snapshot; 0 if there is none
    Column("when_expired", String(10), nullable=False),  # "offer" or "abandon": see `create_study`
    Column("checksum", LargeBinary, nullable=False),  # of the columns above except the two counts; see `events`
    Column("chain", LargeBinary, nullable=False),  # checksum of the last event
    UniqueConstraint("name", name="alexp_studies_name"),
    sqlite_autoincrement=True,  # the id of a deleted study is never used again
)

events = Table(
    "alexp_events",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),  # 0, 1, 2, ...: the total order
    Column("kind", String(10), nullable=False),  # see `events.Kind`
    Column("trial", Integer, nullable=False),
    Column("candidate", Integer),
    Column("model", Integer),
    Column("explored", Boolean),
    Column("propensity", Double),
    Column("reward", Double),
    Column("at", Double, nullable=False),
    Column("worker", String(200), nullable=False),
    Column("detail", LargeBinary),  # compressed JSON: the round (see `events.Detail`), q and returns in force
    Column("key", String(120), nullable=False),  # of the call, and the position of the event in it
    Column("chain", LargeBinary, nullable=False),  # checksum of the event and all before it
    Index("alexp_events_key", "study_id", "key", unique=True),
)

snapshots = Table(
    "alexp_snapshots",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("n_events", Integer, primary_key=True),
    Column("format", Integer, nullable=False),
    Column("library", String(50), nullable=False),
    Column("data", LargeBinary, nullable=False),  # compressed JSON
    Column("chain", LargeBinary, nullable=False),  # checksum of the last event in it
    Column("checksum", LargeBinary, nullable=False),
)

arrays = Table(
    "alexp_arrays",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("hash", String(64), primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("dtype", String(20), nullable=False),
    Column("shape", Text, nullable=False),  # JSON
    Column("data", LargeBinary, nullable=False),  # compressed bytes of one part
)

# Which worker measures a pending trial, and until when it is reserved. Not part of the log: leases expire by the clock,
# and decisions of a study must not depend on that.
leases = Table(
    "alexp_leases",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("trial", Integer, primary_key=True),
    Column("worker", String(200), nullable=False),
    Column("seconds", Double, nullable=False),  # by which a heartbeat prolongs it
    Column("taken_at", Double, nullable=False),  # seconds since 1970, UTC
    Column("heartbeat_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)


# -- damage ----------------------------------------------------------------------------------------------------

_ILLEGIBLE = ("decode", "utf-8", "string or blob too big", "datatype mismatch")


def is_unreadable(error: Exception, connection: Connection) -> bool:
    """Whether the error concerns single values of a SQLite file, so that other rows can be read."""
    is_about_values = "no such" not in str(error) and "locked" not in str(error) and not is_lack_of_memory(error)
    return connection.dialect.name == "sqlite" and is_about_values


@contextmanager
def damage_errors(what: str, intact: int | None = None) -> Iterator[None]:
    """Turn errors about values of a wrong type into `StorageError`; a lack of memory is raised unchanged."""
    try:
        yield
    except (TypeError, ValueError, OverflowError, LookupError) as error:
        if is_lack_of_memory(error):
            raise
        raise damaged(f"{what} cannot be read ({type(error).__name__})", intact) from error
    except sa.exc.DBAPIError as error:
        if any(word in str(error.orig).lower() for word in _ILLEGIBLE):
            raise damaged(f"{what} cannot be read (it is not text)", intact) from error
        raise


# -- addresses -------------------------------------------------------------------------------------------------

DEFAULT = "sqlite:///alexp.db"
_EXPECTED = f"storage must look like {DEFAULT!r}, 'postgresql://user@host/database' or the path of a file"
_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
# Parts of the query of a URL that may be shown; any other may be a secret, or a misspelt one.
_SHOWN = {"host", "hostaddr", "port", "dbname", "sslmode", "connect_timeout", "application_name"}
_HOST = re.compile(r"[\w.\-]*|[\da-fA-F:.%]+")
_WORD = r"[A-Za-z][A-Za-z0-9+._-]+"  # two letters at least: one is a drive
_MISTYPED = re.compile(
    rf"\s*['\"]?(?:{_WORD}\s*:\s*[/\\]"  # postgresql:/...
    r"|(?:postgres\w*|psql|pg|sqlite\d?|mysql|mariadb|oracle|mssql|jdbc|https?)(?:\+\w+)?\s*(?:[:;]|[/\\]{2})"
    r"|[/\\]{2}[^/\\]*@"  # //user@...
    r"|.*:.*@"  # user:password@...
    r"|.*\b(?:password|passwd|pwd|dbname|hostaddr)\s*=)",
    re.IGNORECASE | re.DOTALL,
)


def parse_url(url: str | URL | Path) -> URL:
    """Read a storage URL; plain paths mean SQLite files. Messages never repeat the URL: it may hold a password.

    >>> parse_url("lab.db").render_as_string(), parse_url("postgresql://me@host/db").drivername
    ('sqlite:///lab.db', 'postgresql+psycopg')
    >>> parse_url("postgresql://host/db?user=me&password=secret").render_as_string()
    'postgresql+psycopg://me:***@host/db'
    """
    if not isinstance(url, str | URL | Path):
        raise TypeError(f"{_EXPECTED}, got {type(url).__name__}")
    if isinstance(url, Path) or (isinstance(url, str) and "://" not in url):
        return _file(str(url))
    try:
        parsed = make_url(url.strip() if isinstance(url, str) else url)
    except (sa.exc.ArgumentError, ValueError):  # the latter for a port that is no number
        raise ValueError(f"{_EXPECTED}; what was given cannot be read as a URL") from None
    driver = _DRIVERS.get(parsed.drivername.lower())
    if driver is None:
        raise ValueError("storage must be SQLite or PostgreSQL: its URL begins with 'sqlite://' or 'postgresql://'")
    parsed = parsed.set(drivername=driver)
    return _checked_file(parsed) if driver == "sqlite" else _checked_server(parsed)


def _file(path: str) -> URL:
    if not path.strip() or "\0" in path:
        raise ValueError(f"{_EXPECTED}, got {'an empty text' if not path.strip() else 'a text with a null character'}")
    if _MISTYPED.match(path):
        raise ValueError(
            f"{_EXPECTED}; what was given looks like a mistyped URL (is it '://' after the kind of database?). "
            "A file of such a name can be given as 'sqlite:///./NAME'"
        )
    return URL.create("sqlite", database=path)


def _checked_file(url: URL) -> URL:
    if url.username or url.password or url.host or url.port:
        raise ValueError("a SQLite URL has no user, password or host: three slashes, as in 'sqlite:///alexp.db'")
    if url.database in (None, "", ":memory:"):
        raise ValueError("a study in memory would not be durable; give a file, for instance 'sqlite:///alexp.db'")
    assert url.database is not None
    if re.match(rf"{_WORD}:[/\\]", url.database):
        raise ValueError(f"{_EXPECTED}; this is one URL inside another")
    return url.set(query={})


def _checked_server(url: URL) -> URL:
    """Move user and password of the query into their fields; raise if a part of a password is in another field."""
    query = {key: value for key, value in url.query.items() if key not in ("user", "password")}
    user, password = (_last(url.query.get(key)) for key in ("user", "password"))
    url = url.set(username=user or url.username, password=password or url.password, query=query)
    shown = [url.database or "", *(_last(value) or "" for key, value in query.items() if key.lower() in _SHOWN)]
    if not _HOST.fullmatch(url.host or "") or any("@" in value for value in shown):
        raise ValueError(
            "the storage's host or database has invalid characters; in a password, write '@' as %40, '/' as %2F, "
            "':' as %3A and '?' as %3F"
        )
    return url


def _last(value: str | tuple[str, ...] | None) -> str | None:
    return value[-1] if isinstance(value, tuple) else value


def without_secrets(url: URL) -> tuple[URL, dict[str, str]]:
    """The URL without the parts of its query that may be secret, and these parts, which only the driver gets."""
    hidden = {key: _last(value) or "" for key, value in url.query.items() if key.lower() not in _SHOWN}
    return url.difference_update_query(hidden), hidden


def scrub(text: str, url: URL, hidden: dict[str, str]) -> str:
    """A message of the driver with its secrets replaced by ***."""
    secrets = {str(url.password)} if url.password else set()
    secrets |= {value for value in hidden.values() if value}
    for secret in sorted(secrets, key=len, reverse=True):
        for written in (secret, quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(written, "***")
    return text


# -- the database ----------------------------------------------------------------------------------------------

_WRITE = "alexp_write"
_REPEATABLE_READ = {"isolation_level": "REPEATABLE READ"}  # on PostgreSQL, one snapshot for all statements
_CREATION_LOCK = 4_274_051_867  # any number, the same in all processes
_IDLE_TIMEOUT = 300_000  # ms after which PostgreSQL takes the lock from a host that has disappeared
_IDLE_SECONDS = 1.0  # seconds after which a connection is tested before it is used
_SMALL_CACHE = -16_000  # KiB of page cache per SQLite connection
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}  # notice a dead connection
_MISSING = re.compile(r"no such (table|column)|has no column|(relation|column) .* does not exist")
_DAMAGED = ("malformed", "not a database", "corrupt", "unsupported file format", "decode", "duplicate column")
_HELP = (
    "Restore it from a backup, copy what is intact with `alexp study salvage SOURCE TARGET`, or recover what is left "
    "of a file with `sqlite3 FILE .recover`"
)

_RESTORE = (
    "Stop all processes that use it, restore the database and its -wal file from a backup, remove the -shm file, and "
    "start again. A backup that is moved (not copied) over the database can be restored without stopping"
)

_inherited: list[Engine | None] = []  # of the parent process; referenced here so that they are never closed
_torn_files: set[str] = set()  # files on which the parent process had an open transaction at the fork
_overwritten: set[Inode | None] = set()  # files that were overwritten while this process had them open


class Transactions:
    """Counts the open transactions of every thread; a fork waits until there is none."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: Counter[int] = Counter()  # by thread
        self._halted = False

    @contextmanager
    def one(self) -> Iterator[None]:
        """A block that counts as one transaction; waits while the process forks."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._halted or me in self._inside)
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= Counter((me,))
                self._changed.notify_all()

    def halt(self, timeout: float) -> bool:
        """Block new transactions, wait for those of other threads, and return whether none is left.

        A transaction of the calling thread is not waited for: it cannot end meanwhile.
        """
        me = threading.get_ident()
        with self._changed:
            self._halted = True
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, timeout)
            return not self._inside

    def resume(self) -> None:
        """After `halt`."""
        with self._changed:
            self._halted = False
            self._changed.notify_all()


class _Connection(sqlite3.Connection):
    """A connection with a record of the files it has open."""

    file: OpenFile
    is_read_only = False


class Storage(Forked):
    """A SQLite file or a PostgreSQL database that holds any number of studies.

    SQLite runs in WAL mode with a full sync at every commit: committed data survive a crash of the process and of the
    machine. A writer takes the write lock of the file at the start of its transaction, so that concurrent writers wait
    for each other. On PostgreSQL a writer locks the row of the study.

    Parameters
    ----------
    url
        `sqlite:///file.db` (or just a path), or `postgresql://user:password@host/database`.
    timeout
        Seconds to wait for other writers before giving up.

    Attributes
    ----------
    epoch : how often the file was found to be another one, or to have been changed by another program.
    """

    def __init__(self, url: str | URL | Path = DEFAULT, timeout: float = 60.0) -> None:
        self.url, self._hidden = without_secrets(parse_url(url))
        self.timeout = timeout
        self.epoch = 0
        self._absolute_path = (
            "" if self.path is None else os.path.abspath(self.path)
        )  # whatever the working directory later
        self._engine: Engine | None = None
        self._newest: OpenFile | None = None  # of the connection that was opened last
        self._was_there = self._checked = False
        self._is_new = False  # whether the file was replaced after it was checked
        self._transactions, self._is_idle = Transactions(), True
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
        return os.path.realpath(self._absolute_path) if self._absolute_path else ""

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine of this process."""
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
            limits = (
                f"-c lock_timeout={int(1000 * self.timeout)} -c idle_in_transaction_session_timeout={_IDLE_TIMEOUT}"
            )
            more = {"options": limits} | _KEEPALIVES | self._hidden
            server = sa.create_engine(self.url, pool_size=2, connect_args=more)
            event.listen(server, "checkout", _check_idle)
            return server
        engine = sa.create_engine(self.url, creator=self._open)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _open(self) -> _Connection:
        """A connection to the SQLite file, which must exist; for reading where it cannot be written to."""
        path = self._file
        inode, has_log = inode_of(path), os.path.exists(path + "-wal") and os.path.getsize(path + "-wal") > 0
        if inode is None and self._was_there:
            raise StorageError(self._gone_message())
        if inode in _overwritten:
            raise StorageError(self._overwritten_message())
        # Reading a file without a -wal file must not create one.
        is_writable = inode is None or os.access(path, os.W_OK)
        mode = "mode=rw" if is_writable else "mode=ro" if has_log else "mode=ro&immutable=1"
        connection = sqlite3.connect(
            f"{Path(path).as_uri()}?{mode}",
            uri=True,
            timeout=self.timeout,
            check_same_thread=False,
            isolation_level=None,  # the driver must not begin transactions by itself
            factory=_Connection,
        )
        try:
            if is_writable:
                self._prepare_sqlite(connection)
            connection.execute(f"PRAGMA cache_size={_SMALL_CACHE}")
            connection.execute("SELECT 1 FROM sqlite_master").fetchall()  # opens the -wal and -shm files
            connection.is_read_only = not is_writable
            connection.file = self._newest = OpenFile(path, inode, is_writable or has_log)
            self._was_there = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare_sqlite(self, connection: sqlite3.Connection) -> None:
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

    def close(self) -> None:
        """Close all connections; they open again when needed."""
        engine, self._engine = self._engine, None
        file, self._newest = self._newest, None
        if engine is None:
            return
        if file is not None and file.condition() is Condition.OVERWRITTEN:
            self._never_close(engine, file)
        else:
            engine.dispose()

    def _create_private(self) -> None:
        """Create the file, readable by its owner only; SQLite gives the -wal and -shm files the same mode."""
        with suppress(OSError):  # SQLite's own error follows
            os.close(os.open(self._absolute_path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    # -- the file at the path ----------------------------------------------------------------------------------

    def check_file(self) -> None:
        """Raise if the SQLite file at the path is missing or is not the open one; takes microseconds.

        The next transaction opens the new file.
        """
        file, engine = self._newest, self._engine
        condition = Condition.SAME if file is None else file.condition()
        if condition is Condition.OVERWRITTEN:
            self._never_close(engine, file)
        inode = inode_of(self._file) if self.is_sqlite else None
        if inode in _overwritten:
            raise StorageError(self._overwritten_message())
        if self._was_there and inode is None:
            raise StorageError(self._gone_message())
        if condition is Condition.MOVED:
            self._reopen(engine)
            raise StorageError(f"{self.describe()} was replaced by another file, which is opened at the next call")

    def _reopen(self, engine: Engine | None) -> None:
        """Close a file that is no longer at the path; SQLite writes nothing when such a file is closed."""
        if engine is not None and self._engine is engine:
            self.epoch += 1
            self._is_new, self._checked = self._is_new or self._checked, False
            self.close()

    def _never_close(self, engine: Engine | None, file: OpenFile | None) -> None:
        """Keep connections to an overwritten file open for ever: closing them would write old pages into it."""
        if engine is not None and file is not None:
            _overwritten.add(file.inode)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))  # also at the end of the process
            if self._engine is engine:
                self._engine = self._newest = None

    def _gone_message(self) -> str:
        return f"{self.describe()} was renamed or removed; put it back, and the next call will find it"

    def _overwritten_message(self) -> str:
        return (
            f"{self.describe()} was overwritten, or its -wal or -shm file was removed, cut short or replaced, while it "
            f"was in use. {_RESTORE}"
        )

    # -- forking -----------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close the connections that a child must not inherit; see `forking`."""
        if self.is_sqlite:
            self._is_idle = self._transactions.halt(self.timeout + 1.0)
            if self._is_idle:
                self.close()

    def after_fork(self, in_child: bool) -> None:
        """The parent continues; the child neither uses nor closes its parent's connections."""
        if not in_child:
            self._transactions.resume()
            return
        if not self._is_idle:
            _torn_files.add(self._file)
        _inherited.append(self._engine)
        self._engine, self._transactions = None, Transactions()

    # -- transactions ------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only transaction on one snapshot of the database."""
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
            options |= _REPEATABLE_READ
        try:
            with self._transactions.one(), self._connected(write) as connection:
                connection = connection.execution_options(**options)
                with connection.begin():
                    self._check_before(connection)
                    yield connection
                    committing = write
                self._check_after(connection, write)
        except sa.exc.DBAPIError as error:
            text = str(error)
            cause = error if self._scrub(text) == text else None
            if committing:  # the answer, or the commit itself, may have been lost
                raise UnknownOutcomeError(f"{self.describe()} failed during a commit: {self._reason(error)}") from cause
            if is_lack_of_memory(error):
                raise self._memory_error(write) from cause
            raise StorageError(self._explain(error, write)) from cause
        except UnicodeDecodeError as error:  # from the text of an error of SQLite
            raise StorageError(f"{self.describe()} is damaged: it holds invalid text. {_HELP}") from error
        except ModuleNotFoundError as error:
            raise StorageError(f"{error}; a study on PostgreSQL needs pip install 'alexp[service]'") from error
        except OutOfMemoryError:
            raise
        except Exception as error:
            if not is_lack_of_memory(error):
                raise
            if committing:
                raise UnknownOutcomeError(f"memory was short while {self.describe()} committed") from error
            raise self._memory_error(write) from error

    @contextmanager
    def _connected(self, write: bool) -> Iterator[Connection]:
        """A connection to the file that is at the path now."""
        engine = self.engine
        connection = engine.connect()
        if self.is_sqlite and self._is_stale(_raw(connection), write):
            connection.close()
            self._reopen(engine)
            connection = self.engine.connect()
        with connection:
            if self._is_new:
                self._check_new()
            yield connection

    def _check_new(self) -> None:
        """Check the tables of a file that has replaced another one; raises if it has none."""
        self._is_new = False
        try:
            self.prepare()
        except BaseException:
            self._is_new = True
            raise

    def _is_stale(self, raw: _Connection, write: bool) -> bool:
        return raw.file.is_moved() or (write and raw.is_read_only and os.access(self._file, os.W_OK))

    def _check_before(self, connection: Connection) -> None:
        """Compare the file at the path with the open one, before the transaction changes anything."""
        if not self.is_sqlite:
            return
        file = _raw(connection).file
        condition = file.condition()
        if condition is Condition.MOVED:
            raise StorageError(f"{self.describe()} is being replaced by another file. Nothing was changed; try again")
        if condition is Condition.OVERWRITTEN:
            self._never_close(connection.engine, file)
            raise StorageError(f"{self._overwritten_message()}. Nothing was changed")
        if condition is Condition.TOUCHED:
            self.epoch += 1
            connection.exec_driver_sql("PRAGMA shrink_memory")  # later reads come from the file, not from the cache

    def _check_after(self, connection: Connection, write: bool) -> None:
        """Compare them again after a commit: a commit to a file that is no longer at the path is lost."""
        if not self.is_sqlite:
            return
        file = _raw(connection).file
        condition = file.condition() if write or not file.is_wal else Condition.SAME
        if condition is Condition.OVERWRITTEN:
            self._never_close(connection.engine, file)
        if condition in (Condition.OVERWRITTEN, Condition.MOVED):
            what = f"{self.describe()} was replaced or overwritten"
            raise (
                UnknownOutcomeError(f"{what} during a commit")
                if write
                else StorageError(f"{what} while it was read; try again")
            )

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Outside transactions: a lack of memory that is reported as another error becomes one that names it."""
        try:
            yield
        except Exception as error:
            if isinstance(error, MemoryError) or not is_lack_of_memory(error):
                raise
            raise self._memory_error(write=False) from error

    def _memory_error(self, write: bool) -> OutOfMemoryError:
        unchanged = "; nothing was changed" if write else ""
        return out_of_memory(f"to use {self.describe()}{unchanged}; the database is intact")

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
        return f"the database {where} failed: {reason}{unchanged}"

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
        """Until the commit, block other processes from creating tables or studies. On SQLite every writer does."""
        if not self.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))

    # -- versions ----------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether there is a database with study tables; creates nothing."""
        if self._absolute_path and not os.path.exists(self._absolute_path):
            if self._was_there:
                raise StorageError(self._gone_message())
            return False
        with self.reading() as connection:
            found = stored_version(connection)
        self._checked = self._checked or found == VERSION  # `prepare` need not query the version again
        return found is not None

    def prepare(self) -> None:
        """Create the tables, or upgrade those of an older version. Cheap when there is nothing to do."""
        if self._checked:
            return
        if self._absolute_path and not (self._was_there or os.path.exists(self._absolute_path)):
            self._create_private()
        with self.reading() as connection:
            found = stored_version(connection)
        if found is None and self.epoch:
            raise StorageError(f"{self.describe()} was replaced by a file without studies; put the right one back")
        self.check_version(found)
        if found != VERSION:
            try:
                self._upgrade()
            except UnknownOutcomeError:
                self._upgrade()  # does nothing if the commit was stored
        self._checked = True

    def check_version(self, found: int | None) -> None:
        """Raise for tables of an unknown version."""
        if found is not None and found > VERSION:
            raise StorageError(
                f"{self.describe()} has version {found} of the study tables; this library knows up to {VERSION}. "
                "It was written by a newer version: install that one"
            )

    def _upgrade(self) -> None:
        with self.writing() as connection:
            self.lock(connection)
            found = stored_version(connection)  # another process may have upgraded them
            self.check_version(found)
            if found is None:
                metadata.create_all(connection)
                connection.execute(versions.insert().values(version=VERSION))
            elif found != VERSION:
                for number in range(found, VERSION):
                    UPGRADES[number](connection)
                connection.execute(versions.update().values(version=VERSION))


def stored_version(connection: Connection) -> int | None:
    """Version of the study tables: None if there are none."""
    inspector = sa.inspect(connection)
    # In this order: another process may create both, in one transaction, between the two questions.
    has_studies = inspector.has_table(studies.name)
    if not inspector.has_table(VERSION_TABLE):
        if has_studies:
            raise StorageError(f"the database has study tables but no table {VERSION_TABLE} of their version. {_HELP}")
        return None
    rows = connection.execute(sa.select(versions.c.version)).scalars().all()
    if len(rows) != 1 and (rows or has_studies):
        raise StorageError(f"the database has study tables but {len(rows)} records of their version. {_HELP}")
    return int(rows[0]) if rows else None


def _raw(connection: Connection) -> _Connection:
    found = connection.connection.dbapi_connection
    assert isinstance(found, _Connection)
    return found


def _check_idle(connection: Any, record: Any, _proxy: Any) -> None:
    """Replace a connection that died while it was idle. Connections in recent use are not tested, to save time."""
    now = time.monotonic()
    if now - record.info.get("used", now) > _IDLE_SECONDS:
        try:
            connection.execute("SELECT 1")
            connection.rollback()
        except Exception as error:
            raise sa.exc.DisconnectionError from error
    record.info["used"] = now


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

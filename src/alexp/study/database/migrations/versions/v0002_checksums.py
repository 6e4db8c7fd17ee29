"""Second version: chained checksums of events, keys of calls, checksums of snapshots, leases (released with 0.2.0)."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op
from sqlalchemy.engine import Connection

from alexp.study.database.chain import beginning, link, seal
from alexp.study.database.events import Event
from alexp.study.database.records import StudyRow

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_PART = 10_000
_STUDY = ("id", "name", "algorithm", "settings", "entropy", "problem", "probe", "library", "created_at")
_DECISION = ("candidate", "model", "explored", "propensity", "reward")
_EVENT = ("seq", "kind", "trial", *_DECISION, "at", "worker", "detail")

_studies = sa.table("alexp_studies", *map(sa.column, _STUDY), sa.column("checksum"), sa.column("chain"))
_events = sa.table(
    "alexp_events",
    sa.column("study_id"),
    *(sa.column(name, sa.Boolean() if name == "explored" else None) for name in _EVENT),
    sa.column("chain"),
)
_snapshots = sa.table(
    "alexp_snapshots",
    *map(sa.column, ("study_id", "n_events", "format", "library", "data", "chain", "checksum")),
)


def upgrade() -> None:
    """Add the columns, compute the checksums of what is there, and create the table of leases.

    Checksums of events may not be missing: a process of the first version that is still running is refused, instead of
    writing events that nobody can verify.
    """
    op.add_column("alexp_studies", sa.Column("when_expired", sa.String(10)))
    op.add_column("alexp_studies", sa.Column("checksum", sa.LargeBinary))
    op.add_column("alexp_studies", sa.Column("chain", sa.LargeBinary))
    op.add_column("alexp_events", sa.Column("key", sa.String(120)))
    op.add_column("alexp_events", sa.Column("chain", sa.LargeBinary))
    op.add_column("alexp_snapshots", sa.Column("chain", sa.LargeBinary))
    op.add_column("alexp_snapshots", sa.Column("checksum", sa.LargeBinary))
    connection = op.get_bind()
    for row in connection.execute(sa.select(*(_studies.c[name] for name in _STUDY))).all():
        _seal_study(connection, StudyRow(*row))
    with op.batch_alter_table("alexp_events") as events:
        events.alter_column("chain", existing_type=sa.LargeBinary, nullable=False)
    with op.batch_alter_table("alexp_snapshots") as snapshots:
        snapshots.alter_column("chain", existing_type=sa.LargeBinary, nullable=False)
        snapshots.alter_column("checksum", existing_type=sa.LargeBinary, nullable=False)
    op.create_index("alexp_events_key", "alexp_events", ["study_id", "key"], unique=True)
    op.create_table(
        "alexp_leases",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("alexp_studies.id"), primary_key=True),
        sa.Column("trial", sa.Integer, primary_key=True),
        sa.Column("worker", sa.String(200), nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("taken_at", sa.Double, nullable=False),
        sa.Column("heartbeat_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )


def _seal_study(connection: Connection, row: StudyRow) -> None:
    """Checksums of everything a study consists of, as it is; what follows a gap in the log gets none that fits."""
    first = newest = beginning(row)
    after = {0: first}
    snapshots = {
        shot.n_events: shot for shot in connection.execute(sa.select(_snapshots).where(_snapshots.c.study_id == row.id))
    }
    number = 0
    for part in _in_parts(connection, row.id):
        links = []
        for event in part:
            newest = link(newest, event) if event.seq == number else b""
            number += 1
            links.append({"of_study": row.id, "of_seq": event.seq, "new": newest})
            if number in snapshots:
                after[number] = newest
        connection.execute(
            _events.update()
            .where(_events.c.study_id == sa.bindparam("of_study"), _events.c.seq == sa.bindparam("of_seq"))
            .values(chain=sa.bindparam("new")),
            links,
        )
    for n_events, shot in snapshots.items():
        chain = after.get(n_events, b"")
        checksum = seal(n_events, shot.format, shot.library, chain, shot.data) if chain else b""
        where = (_snapshots.c.study_id == row.id, _snapshots.c.n_events == n_events)
        connection.execute(_snapshots.update().where(*where).values(chain=chain, checksum=checksum))
    connection.execute(_studies.update().where(_studies.c.id == row.id).values(checksum=first, chain=newest))


def _in_parts(connection: Connection, study: int) -> Iterator[list[Event]]:
    start = 0
    columns = [_events.c[name] for name in _EVENT]
    while True:
        query = sa.select(*columns).where(_events.c.study_id == study, _events.c.seq >= start)
        part = [Event(*row) for row in connection.execute(query.order_by(_events.c.seq).limit(_PART))]
        if not part:
            return
        yield part
        start = part[-1].seq + 1


def downgrade() -> None:
    """Drop what was added."""
    op.drop_table("alexp_leases")
    op.drop_index("alexp_events_key", "alexp_events")
    for table, columns in (
        ("alexp_snapshots", ("checksum", "chain")),
        ("alexp_events", ("chain", "key")),
        ("alexp_studies", ("chain", "checksum", "when_expired")),
    ):
        for column in columns:
            op.drop_column(table, column)

"""Tables of a study database, as they are at the newest version of the schema."""

from __future__ import annotations

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
)

VERSION = "0002"  # newest migration; a test holds it against the migrations themselves
VERSION_TABLE = "alexp_version"

metadata = MetaData()

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
    Column("when_expired", String(10)),  # what becomes of trials whose lease has run out
    Column("checksum", LargeBinary),  # of the columns above but the two counts; see `chain`
    Column("chain", LargeBinary),  # checksum of the last event
    UniqueConstraint("name", name="alexp_studies_name"),
    sqlite_autoincrement=True,  # the id of a deleted study is never used again
)

events = Table(
    "alexp_events",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),  # 0, 1, 2, ...: the total order
    Column("kind", String(10), nullable=False),  # ask, tell, observe, abandon, amend, retract, arm
    Column("trial", Integer, nullable=False),
    Column("candidate", Integer),
    Column("model", Integer),
    Column("explored", Boolean),
    Column("propensity", Double),
    Column("reward", Double),
    Column("at", Double, nullable=False),
    Column("worker", String(200), nullable=False),
    Column("detail", LargeBinary),  # compressed JSON: the round (see `events.Detail`), q and returns in force
    Column("key", String(120)),  # of the call, and the event's position in it: who repeats the call finds the event
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
    Column("chain", LargeBinary, nullable=False),  # that of the last event it has taken in
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

# Who measures a pending trial, and until when nobody else does. Not part of the log: leases run out by the clock, and
# what a study decides must not depend on that.
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

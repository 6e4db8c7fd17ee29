"""First version: studies, their events, snapshots and arrays (released with 0.1.0)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the four tables."""
    op.create_table(
        "alexp_studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("algorithm", sa.String(100), nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("entropy", sa.Text, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("probe", sa.Text, nullable=False),
        sa.Column("library", sa.String(50), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("n_events", sa.Integer, nullable=False),
        sa.Column("snapshot_at", sa.Integer, nullable=False),
        sa.UniqueConstraint("name", name="alexp_studies_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alexp_events",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("alexp_studies.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("trial", sa.Integer, nullable=False),
        sa.Column("candidate", sa.Integer),
        sa.Column("model", sa.Integer),
        sa.Column("explored", sa.Boolean),
        sa.Column("propensity", sa.Double),
        sa.Column("reward", sa.Double),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("worker", sa.String(200), nullable=False),
        sa.Column("detail", sa.LargeBinary),
    )
    op.create_table(
        "alexp_snapshots",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("alexp_studies.id"), primary_key=True),
        sa.Column("n_events", sa.Integer, primary_key=True),
        sa.Column("format", sa.Integer, nullable=False),
        sa.Column("library", sa.String(50), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "alexp_arrays",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("alexp_studies.id"), primary_key=True),
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("part", sa.Integer, primary_key=True),
        sa.Column("dtype", sa.String(20), nullable=False),
        sa.Column("shape", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Drop everything."""
    for name in ("alexp_arrays", "alexp_snapshots", "alexp_events", "alexp_studies"):
        op.drop_table(name)

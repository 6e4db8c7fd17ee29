"""Run by Alembic: applies the migrations on the connection it is handed, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

from alexp.study.database.schema import VERSION_TABLE, metadata


def migrate() -> None:
    """Bring the database of the given connection to the wanted version."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if __name__ == "env_py":  # the name under which Alembic executes this file; a plain import must do nothing
    migrate()

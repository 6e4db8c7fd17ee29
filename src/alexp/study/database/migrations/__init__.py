"""Alembic migrations of the study database: one file per version of the schema, applied when a study is opened."""

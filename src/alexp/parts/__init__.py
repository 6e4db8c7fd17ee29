"""Candidates that no one memory holds: in parts on the workers of a Dask cluster, or enumerated by a rule.

`program` says what is computed on every candidate and runs it on a part, `engines` has the parts and sends programs to
them, `backend` is the one-pass back-end that posteriors use, `candidates` are files, Dask arrays and combinations.
"""

from alexp.common.backends import register
from alexp.parts.candidates import Combinations as Combinations, Parquet as Parquet, engine_for, part_rows

register("engine_for", engine_for)
register("part_rows", part_rows)

"""Arrow tables from exported rows: the object's description gives the types, and no value is changed to fit."""

from dragoman_api.arrow.schema import without_leaves

from .batches import ArrowStream, TableReader, write_parquet

__all__ = ["ArrowStream", "TableReader", "without_leaves", "write_parquet"]

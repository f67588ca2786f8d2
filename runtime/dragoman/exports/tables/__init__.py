"""Arrow tables from exported rows: types from the description, values whole or set aside, never changed."""

from .batches import TableReader
from .schema import without_leaves

__all__ = ["TableReader", "without_leaves"]

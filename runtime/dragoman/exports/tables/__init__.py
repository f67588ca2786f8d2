"""Arrow tables from exported rows: types from the description, values whole or set aside, never changed."""

from dragoman_api.arrow.schema import without_leaves

from .batches import TableReader

__all__ = ["TableReader", "without_leaves"]

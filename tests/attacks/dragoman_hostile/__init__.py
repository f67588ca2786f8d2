"""A driver that tries everything a driver must not be able to do."""

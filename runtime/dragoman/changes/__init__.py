"""Change files: they are read and planned as a whole, applied in parts, and undone."""

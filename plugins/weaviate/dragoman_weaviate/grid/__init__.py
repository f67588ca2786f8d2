"""Pages of the grid: filters, sorts and cells."""

"""Pages of the grid: filters, sorts, cells, and rows beyond the result window."""

"""Changes of rows: the plan, its exact requests, and what became of each."""

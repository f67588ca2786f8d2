"""Open connections: a typed method for each operation, and the way of a call to its driver."""

"""Open connections: a typed method for each operation, and the path of a call to the driver."""

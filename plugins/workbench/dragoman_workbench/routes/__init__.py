"""What answers each route, by view."""

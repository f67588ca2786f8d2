"""What runs inside a machine."""

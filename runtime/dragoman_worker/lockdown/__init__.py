"""The kernel layers that confine a driver's process on Linux."""

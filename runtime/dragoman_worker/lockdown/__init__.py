"""The child side of the lock-down: the kernel layers that confine a driver's process on Linux."""

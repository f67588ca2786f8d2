"""Virtual machines with other kernels and processors, which the sandbox's tests run in: `python -m tests.machines`."""

"""The host side of a driver's process: start, confine, broker, call, end. The child side is `dragoman_worker`."""

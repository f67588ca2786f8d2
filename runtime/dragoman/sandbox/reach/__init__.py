"""The host side of what a driver's process reaches: its broker, the addresses behind a name, and further grants.

What may be between this machine and a server (`dragoman.sandbox.reach.route`), the driver's process is not told.

Neighbours: `dragoman_registry.wheels.manifest` has the words of a manifest's permissions,
`dragoman_registry.ip_addresses` how near an address is, and `dragoman_worker.broker_loop` is the broker's child side.
"""

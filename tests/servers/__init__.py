"""Real engines for tests, without Docker: install, start, stop, and JSON that says how to reach them.

See README.md for the commands. `cli` reads them, `fleet` and `background` keep engines running, and each family of
engines is a package of its own that offers `ENGINES`.
"""

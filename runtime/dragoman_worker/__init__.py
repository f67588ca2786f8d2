"""The child side: the process of one driver, from its locked-down start to its last answer."""

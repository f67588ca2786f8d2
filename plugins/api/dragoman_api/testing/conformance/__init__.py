"""The conformance tests: what every driver promises, by subject."""

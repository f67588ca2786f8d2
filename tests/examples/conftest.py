"""The examples are projects of their own: `tests/authoring` runs their tests as an author would."""

collect_ignore_glob = ["*"]

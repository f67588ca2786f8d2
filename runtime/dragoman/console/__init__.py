"""The console's additions to the server's language: variables, and expectations on answers."""

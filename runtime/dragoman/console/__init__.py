"""What the console adds to the server's own language: variables to fill in, and what is expected of an answer."""

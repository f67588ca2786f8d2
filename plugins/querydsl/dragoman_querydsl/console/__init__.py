"""The console: a text to requests, and a request to its answer."""

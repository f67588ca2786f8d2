"""Grid, console and marketplace in a browser, over the public API of `dragoman`."""

"""What real servers answered, and the requests by which the fakes are compared with them."""

"""What a real Weaviate answered, and the requests by which the fake is compared with it."""

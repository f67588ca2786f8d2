"""The Weaviate driver of dragoman: collection grid, GraphQL and REST console."""

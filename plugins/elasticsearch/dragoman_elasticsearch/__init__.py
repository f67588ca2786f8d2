"""The Elasticsearch driver of dragoman: index grid and query DSL console."""

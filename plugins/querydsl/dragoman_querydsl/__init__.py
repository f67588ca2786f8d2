"""Query DSL: what the drivers of Elasticsearch and of its relatives share, as a wheel of their closed sets."""

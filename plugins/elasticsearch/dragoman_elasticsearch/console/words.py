"""The words of Elasticsearch's requests that a console completes: paths, members of bodies, the query language."""

from __future__ import annotations

ROOT = (
    "_search", "_cat/indices?v", "_cat/aliases?v", "_cat/shards?v", "_cat/nodes?v", "_cat/health?v", "_cat/count?v",
    "_cluster/health", "_cluster/settings", "_cluster/stats", "_nodes/stats", "_aliases", "_alias", "_analyze", "_bulk",
    "_count", "_data_stream", "_field_caps?fields=*", "_index_template", "_ingest/pipeline", "_mapping", "_mget",
    "_msearch", "_pit", "_reindex", "_resolve/index/*", "_search/scroll", "_security/_authenticate", "_settings",
    "_sql", "_stats", "_tasks", "_template",
)  # fmt: skip
"""Paths that begin without an index."""

OF_INDEX = (
    "_search", "_doc", "_count", "_mapping", "_settings", "_bulk", "_update", "_create", "_source", "_alias",
    "_analyze", "_close", "_delete_by_query", "_explain", "_field_caps?fields=*", "_flush", "_forcemerge", "_mget",
    "_msearch", "_open", "_pit?keep_alive=1m", "_refresh", "_segments", "_stats", "_update_by_query",
    "_validate/query?explain",
)  # fmt: skip
"""Paths after an index."""

PARAMETERS = (
    "allow_no_indices", "expand_wildcards", "filter_path", "flat_settings", "format", "from", "human",
    "ignore_unavailable", "include_defaults", "preference", "pretty", "q", "refresh", "routing", "scroll", "size",
    "sort", "timeout", "track_total_hits", "v", "_source",
)  # fmt: skip
"""Parameters after a path."""

QUERIES = (
    "bool", "match", "match_all", "match_none", "match_phrase", "match_phrase_prefix", "multi_match", "term", "terms",
    "range", "exists", "prefix", "wildcard", "regexp", "fuzzy", "ids", "nested", "query_string", "simple_query_string",
    "constant_score", "dis_max", "function_score", "script_score", "geo_distance", "geo_bounding_box", "has_child",
    "has_parent", "more_like_this", "boosting", "terms_set", "intervals", "knn",
)  # fmt: skip

AGGREGATIONS = (
    "terms", "date_histogram", "histogram", "range", "date_range", "filter", "filters", "nested", "reverse_nested",
    "avg", "sum", "min", "max", "stats", "extended_stats", "value_count", "cardinality", "percentiles",
    "percentile_ranks", "top_hits", "top_metrics", "missing", "composite", "global", "significant_terms", "rare_terms",
    "auto_date_histogram", "geo_bounds", "geotile_grid", "bucket_sort", "bucket_selector", "derivative",
    "cumulative_sum", "aggs",
)  # fmt: skip

TYPES = (
    "keyword", "text", "long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float",
    "unsigned_long", "date", "date_nanos", "boolean", "binary", "ip", "version", "nested", "object", "flattened",
    "geo_point", "geo_shape", "alias", "completion", "dense_vector", "search_as_you_type", "wildcard",
    "constant_keyword", "integer_range", "long_range", "float_range", "double_range", "date_range", "ip_range",
)  # fmt: skip

SEARCH = (
    "query", "size", "from", "sort", "_source", "aggs", "track_total_hits", "fields", "docvalue_fields",
    "stored_fields", "highlight", "post_filter", "search_after", "pit", "collapse", "runtime_mappings", "min_score",
    "timeout", "terminate_after", "seq_no_primary_term", "version", "explain", "profile", "rescore", "script_fields",
    "suggest", "slice", "knn",
)  # fmt: skip

BODIES = {
    "_search": SEARCH,
    "_async_search": SEARCH,
    "_msearch": (*SEARCH, "index"),
    "_count": ("query",),
    "_delete_by_query": ("query", "max_docs", "slice"),
    "_update_by_query": ("query", "script", "max_docs", "slice", "conflicts"),
    "_validate": ("query",),
    "_explain": ("query",),
    "_reindex": ("source", "dest", "script", "conflicts", "max_docs"),
    "_bulk": ("index", "create", "update", "delete", "doc", "doc_as_upsert"),
    "_update": ("doc", "doc_as_upsert", "script", "upsert", "detect_noop"),
    "_aliases": ("actions",),
    "_analyze": ("analyzer", "text", "field", "tokenizer", "filter", "char_filter"),
    "_mapping": ("properties", "dynamic", "runtime", "_source", "_routing", "_meta"),
    "_settings": ("index", "number_of_replicas", "refresh_interval"),
    "_mget": ("docs", "ids"),
    "": ("settings", "mappings", "aliases"),
}
"""Members of a body, by the endpoint; an empty one is an index itself."""

_TERM = ("value", "boost", "case_insensitive")
_MATCH = ("query", "operator", "fuzziness", "minimum_should_match", "analyzer", "boost", "lenient", "zero_terms_query")
_PATTERN = ("value", "case_insensitive", "rewrite", "boost")
FIELD_OPTIONS = {
    "term": _TERM,
    "match": _MATCH,
    "match_phrase": ("query", "slop", "analyzer", "boost"),
    "match_phrase_prefix": ("query", "slop", "max_expansions", "boost"),
    "range": ("gte", "gt", "lte", "lt", "format", "time_zone", "relation", "boost"),
    "prefix": _PATTERN,
    "wildcard": _PATTERN,
    "regexp": (*_PATTERN, "flags", "max_determinized_states"),
    "fuzzy": ("value", "fuzziness", "prefix_length", "max_expansions", "transpositions"),
    "terms": (),
    "terms_set": ("terms", "minimum_should_match_field"),
    "intervals": ("match", "prefix", "wildcard", "all_of", "any_of"),
    "sort": ("order", "missing", "mode", "nested", "unmapped_type", "numeric_type", "format"),
    "geo_distance": ("lat", "lon"),
    "geo_bounding_box": ("top_left", "bottom_right"),
}
"""Clauses whose members are fields, and the options below a field."""

MEMBERS = {
    "bool": ("must", "filter", "should", "must_not", "minimum_should_match", "boost"),
    "nested": ("path", "query", "score_mode", "ignore_unmapped", "inner_hits"),
    "constant_score": ("filter", "boost"),
    "dis_max": ("queries", "tie_breaker"),
    "function_score": ("query", "functions", "boost_mode", "score_mode", "boost"),
    "script_score": ("query", "script", "min_score"),
    "multi_match": ("query", "fields", "type", "operator", "fuzziness", "minimum_should_match", "tie_breaker"),
    "query_string": ("query", "default_field", "fields", "default_operator", "lenient", "analyze_wildcard"),
    "simple_query_string": ("query", "fields", "default_operator", "flags", "lenient"),
    "exists": ("field",),
    "ids": ("values",),
    "has_child": ("type", "query", "score_mode", "min_children", "max_children"),
    "has_parent": ("parent_type", "query", "score"),
    "boosting": ("positive", "negative", "negative_boost"),
    "more_like_this": ("fields", "like", "min_term_freq", "max_query_terms"),
    "highlight": ("fields", "pre_tags", "post_tags", "fragment_size", "number_of_fragments"),
    "collapse": ("field", "inner_hits"),
    "pit": ("id", "keep_alive"),
    "slice": ("id", "max", "field"),
    "script": ("source", "lang", "params", "id"),
    "knn": ("field", "query_vector", "k", "num_candidates", "filter"),
    "source": ("index", "query", "size", "_source", "remote"),
    "dest": ("index", "op_type", "pipeline", "routing"),
    "mappings": ("properties", "dynamic", "runtime", "_source", "_routing", "_meta", "dynamic_templates"),
    "settings": ("number_of_shards", "number_of_replicas", "refresh_interval", "analysis", "index"),
    "terms_aggregation": ("field", "size", "order", "min_doc_count", "missing", "include", "exclude", "shard_size"),
    "date_histogram_aggregation": (
        "field", "calendar_interval", "fixed_interval", "format", "time_zone", "min_doc_count", "extended_bounds",
        "offset", "missing",
    ),
    "histogram_aggregation": ("field", "interval", "min_doc_count", "extended_bounds", "offset", "missing"),
    "range_aggregation": ("field", "ranges", "keyed"),
    "date_range_aggregation": ("field", "ranges", "format", "time_zone"),
    "nested_aggregation": ("path",),
    "filters_aggregation": ("filters", "other_bucket_key"),
    "composite_aggregation": ("sources", "size", "after"),
    "top_hits_aggregation": ("size", "from", "sort", "_source"),
    "aggregation": ("field", "missing", "script"),
}  # fmt: skip
"""Members of an object, by the key before it; of an aggregation, by its type and ``_aggregation``."""

MAPPED = (
    "type", "fields", "properties", "index", "doc_values", "format", "ignore_above", "analyzer", "normalizer",
    "null_value", "copy_to", "coerce", "ignore_malformed", "path", "dynamic",
)  # fmt: skip
"""Members of a field's mapping."""

VALUES = {
    "order": ("asc", "desc"),
    "operator": ("and", "or"),
    "default_operator": ("and", "or"),
    "score_mode": ("avg", "sum", "min", "max", "none"),
    "mode": ("min", "max", "avg", "sum", "median"),
    "conflicts": ("proceed", "abort"),
    "calendar_interval": ("minute", "hour", "day", "week", "month", "quarter", "year"),
    "missing": ("_last", "_first"),
    "lang": ("painless", "expression"),
    "dynamic": ("strict", "runtime"),
}
"""Texts that are a member's value."""

# A smoke test for a pipeline: dragoman console shop -f smoke.es --stop-on-error --var index=orders
GET /_cluster/health
# expect status 200
# expect status != red

POST /${index}/_search
{ "size": 1, "query": { "range": { "total": { "gte": 0 } } } }
# expect status 200
# expect hits.total.value >= 1

"""The OpenSearch driver of dragoman: its servers, and what each of them has."""

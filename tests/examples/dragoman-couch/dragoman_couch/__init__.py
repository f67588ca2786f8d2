"""The CouchDB driver of dragoman."""

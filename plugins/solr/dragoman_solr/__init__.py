"""The Solr driver: cores as tables, documents as rows; `driver.json` says what it can do."""

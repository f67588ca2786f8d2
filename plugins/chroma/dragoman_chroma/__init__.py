"""The Chroma driver: collections as tables, records as rows; `driver.json` says what it can do."""

"""The same rows for agents: a server of the Model Context Protocol over dragoman's public API, under rules."""

"""The targets, by the part of the product they belong to."""

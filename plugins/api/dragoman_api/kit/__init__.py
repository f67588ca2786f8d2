"""Pieces that most drivers need; an author may use each alone."""

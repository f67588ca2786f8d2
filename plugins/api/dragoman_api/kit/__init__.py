"""What every driver writes: pieces that an author may use, each alone."""

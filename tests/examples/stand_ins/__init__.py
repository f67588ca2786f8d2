"""Small drivers that stand in for kinds of databases that no plugin here serves."""

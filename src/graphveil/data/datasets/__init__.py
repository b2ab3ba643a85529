"""Graphs by name, and generated graphs."""

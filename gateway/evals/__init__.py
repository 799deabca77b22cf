"""Measurements of the program's own decisions on labelled rows."""

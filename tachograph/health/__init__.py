"""Diagnostics, recommendations and the maintenance cycle. Knows no storage and no command line."""

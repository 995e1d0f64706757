"""What the files of a saved result are called."""

from __future__ import annotations

__all__ = ["DRAWN", "PICTURES", "SCENARIO", "SUMMARY", "TABLES"]

SCENARIO, SUMMARY, TABLES = "scenario.toml", "summary.json", "tables.npz"
PICTURES = (".png", ".pdf", ".svg")
"""Endings of pictures."""

DRAWN = ("queues", "fct", "slowdown", "utilisation", "rates", "deadlock", "pauses", "timeline")
"""Names of pictures that are drawn into a result's directory later; they go when it is replaced."""

"""Results: what a run left behind, as tables, a summary and its provenance."""

from .labels import Labels
from .provenance import Provenance
from .result import Result
from .summary import Summary
from .table import Category, Table

__all__ = ["Category", "Labels", "Provenance", "Result", "Summary", "Table"]

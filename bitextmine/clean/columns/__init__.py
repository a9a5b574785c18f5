"""What can be said about a sentence pair: one module per kind of column, `catalogue` for all of them."""

from __future__ import annotations

from bitextmine.clean.columns.catalogue import COLUMNS, Column, Pairs, Tools, default_columns

__all__ = ["COLUMNS", "Column", "Pairs", "Tools", "default_columns"]

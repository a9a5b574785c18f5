"""What can be said about a sentence pair: one module per kind of column, `catalogue` for all of them by name."""

from __future__ import annotations

from bitextmine.clean.columns.catalogue import COLUMNS, default_columns, pair_texts
from bitextmine.clean.columns.texts import Column, PairTexts, Tools

__all__ = ["COLUMNS", "Column", "PairTexts", "Tools", "default_columns", "pair_texts"]

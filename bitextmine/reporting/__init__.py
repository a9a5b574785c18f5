"""A file of scored sentence pairs as one HTML page: scores, doubts, examples, origin."""

from bitextmine.files.formats.layout import Columns
from bitextmine.reporting.page import write_report

__all__ = ["Columns", "write_report"]

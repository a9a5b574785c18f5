"""Results of an evaluation on standard output."""

from __future__ import annotations

from typing import Any

import click


def print_report(report: Any, form: str) -> None:
    """Print the result of an evaluation in the form that was asked for."""
    if form == "json":
        import json

        click.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        click.echo(report.to_table(tabs=form == "tsv"))

"""`faultbook audit`: hold printed numbers against arithmetic."""

from __future__ import annotations

import json
from pathlib import Path

import click

from faultbook.cli.errors import one_line_errors
from faultbook.paths import data_folder


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of printed numbers (*.csv) and their relations.yaml.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@one_line_errors
def audit(data: Path | None, as_json: bool) -> None:
    """Hold every printed number against arithmetic."""
    from faultbook import audit as auditing

    folder = _reported_folder(data)
    reported = auditing.read_reported(folder)
    relations_file = folder / "relations.yaml"
    relations = auditing.read_relations(relations_file) if relations_file.is_file() else []
    auditing.check_relations(reported, relations, relations_file)
    audited = auditing.audit(reported, relations)
    if as_json:
        click.echo(json.dumps(auditing.as_json(audited), ensure_ascii=False))
        return
    for document, rows in audited.groupby("document", sort=False):
        counts = rows["status"].value_counts()
        listed = ", ".join(f"{counts[status]} {status}" for status in auditing.STATUSES if status in counts)
        click.echo(f"{document}: {len(rows)} printed numbers: {listed}")
        for row in rows[rows["status"] == "inconsistent"].to_dict("records"):
            click.echo(f"  inconsistent  {row['id']}  {row['printed']}\n    {row['reason']}")


def _reported_folder(data: Path | None) -> Path:
    """A folder of printed numbers, or the `reported` folder in a data folder."""
    if data is None:
        return data_folder("reported")
    return data / "reported" if (data / "reported").is_dir() else data

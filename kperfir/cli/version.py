"""`kperfir version`."""

from __future__ import annotations

from importlib.metadata import version

import click


@click.command("version")
def command() -> None:
    """Show the version."""
    click.echo(f"kperfir {version('kperfir')}")

"""`faultbook lab`: JupyterLab, for this machine only."""

from __future__ import annotations

import os
import sys

import click

from faultbook.cli.errors import one_line_errors
from faultbook.paths import project_folder


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8888, show_default=True)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@one_line_errors
def lab(port: int, no_browser: bool) -> None:
    """Open JupyterLab at notebooks/, on 127.0.0.1 and with a token."""
    project = project_folder()
    command = [
        *(sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1", f"--port={port}"),
        *(f"--ServerApp.root_dir={project}", "--LabApp.default_url=/lab/tree/notebooks"),
        *(["--no-browser"] if no_browser else []),
        # nothing is fetched: no news, no update check, no list of extensions
        *("--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"),
        "--LabApp.extension_manager=readonly",
        # Jupyter refuses root unless told; on a loopback address with a token it is the container user's own Lab.
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]
    os.execv(sys.executable, command)  # noqa: S606  # our own interpreter, a fixed command

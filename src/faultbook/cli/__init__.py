"""The `faultbook` command. A user's mistake is one line on stderr and exit code 2."""

import click

from faultbook import __version__
from faultbook.cli.audit import audit
from faultbook.cli.diagnosis import diagnosis
from faultbook.cli.lab import lab
from faultbook.cli.report import report


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="faultbook")
def main() -> None:
    """What does a failure score of an AI agent really say?"""


for command in (report, audit, diagnosis, lab):
    main.add_command(command)

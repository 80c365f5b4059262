"""The `faultbook` command. A user's mistake is one line on stderr and exit code 2."""

from typing import Any

import click

from faultbook import __version__
from faultbook.cli.attribution import attribution
from faultbook.cli.audit import audit
from faultbook.cli.diagnosis import diagnosis
from faultbook.cli.harness import harness
from faultbook.cli.lab import lab
from faultbook.cli.recovery import recovery
from faultbook.cli.report import report
from faultbook.cli.runs import runs


class _OneLine(click.Group):
    """Commands whose mistaken options, too, are told in one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a wrong option or argument ends it with one line and exit code 2."""
        try:
            return super().invoke(ctx)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else ctx.command_path
            message = " ".join(error.format_message().split()).removesuffix(".")
            click.echo(f"faultbook: {message}; see {path} --help", err=True)
            ctx.exit(2)


@click.group(
    "faultbook", cls=_OneLine, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="faultbook")
def main() -> None:
    """What does a failure score of an AI agent really say?"""


for command in (report, audit, diagnosis, attribution, recovery, harness, runs, lab):
    main.add_command(command)

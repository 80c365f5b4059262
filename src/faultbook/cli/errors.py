"""A user's mistake is one line on stderr and exit code 2; an interrupt is exit code 130."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from faultbook.errors import FaultbookError, Signalled
from faultbook.text import plain

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def one_line_errors(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Turn a FaultbookError into one line and exit code 2, and an interrupt into exit code 130."""

    @wraps(function)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except FaultbookError as error:
            click.echo(f"faultbook: {plain(' '.join(str(error).split()), most=1000)}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("faultbook: interrupted; finished reports are kept, the others stay as they were", err=True)
            sys.exit(130)
        except Signalled as ended:
            click.echo(f"faultbook: ended by {ended.name}; what is finished is kept", err=True)
            sys.exit(128 + signal.Signals[ended.name])

    return wrapped

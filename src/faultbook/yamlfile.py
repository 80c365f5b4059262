"""Read YAML that people wrote: safe types only, and a key that stands twice is an error, not a silent choice."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from faultbook.errors import DataError, unreadable


class _UniqueKeyLoader(yaml.SafeLoader):
    """SafeLoader keeps the last of two equal keys; here that raises."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # SafeLoader refuses it below
            if key in seen:
                problem = f"the key '{str(key)[:80]}' stands twice in one mapping"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def load_yaml(path: str | Path, *, unique_keys: bool = True) -> Any:
    """Load one YAML document from a file; `unique_keys` as for `parse_yaml`.

    Raises
    ------
    DataError
        With the line, if the file is missing, not UTF-8, not YAML, or a mapping has a key twice.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text (byte {error.start})", file=path, mend="save as UTF-8") from None
    except OSError as error:
        raise unreadable(error, path) from None
    return parse_yaml(text, path, unique_keys=unique_keys)


def parse_yaml(text: str, file: str | Path, *, row: int | None = None, unique_keys: bool = True) -> Any:
    """Parse one YAML document.

    Parameters
    ----------
    text : str
        The document.
    file, row : path, int
        Where it came from, for errors; `row` if the document is one row of a file.
    unique_keys : bool
        Refuse a mapping with a key twice; otherwise the last one counts, as in YAML parsers elsewhere.

    Raises
    ------
    DataError
        If it is not YAML.
    """
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader if unique_keys else yaml.SafeLoader)  # noqa: S506  # both are safe
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        place = row if row is not None else line
        raise DataError(str(error.problem or error.context), file=file, row=place, mend="correct the YAML") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DataError(f"not YAML ({_first_line(error)})", file=file, row=row) from None
    except (KeyError, IndexError, AttributeError, TypeError) as error:
        # PyYAML's constructors break like this on a tag that its value contradicts: "!!bool maybe"
        problem = f"not YAML: a tag contradicts its value ({_first_line(error)})"
        raise DataError(problem, file=file, row=row, mend="take the tag out") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

"""Read YAML that people wrote: safe types only, and a key that stands twice is an error, not a silent choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from faultbook.errors import DataError


class _UniqueKeyLoader(yaml.SafeLoader):
    """SafeLoader keeps the last of two equal keys; here that raises."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float, bool)) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' stands twice in one mapping", key_node.start_mark
                )
            seen.add(key if isinstance(key, (str, int, float, bool)) else id(key_node))
        return super().construct_mapping(node, deep=deep)


def load_yaml(path: str | Path) -> Any:
    """Load one YAML document.

    Raises
    ------
    DataError
        With the line, if the file is missing, not UTF-8, not YAML, or a mapping has a key twice.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError):
        raise DataError("no such file", file=path) from None
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text (byte {error.start})", file=path, mend="save as UTF-8") from None
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise DataError(str(error.problem or error.context), file=path, row=line, mend="correct the YAML") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DataError(f"not YAML ({str(error).splitlines()[0]})", file=path) from None

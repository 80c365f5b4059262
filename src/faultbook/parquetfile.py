"""Open parquet files that somebody else wrote: with pyarrow, every fault of the file in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from faultbook.errors import DataError, unreadable

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile


@contextmanager
def opened_parquet(file: Path, *, mend: str = "write it again") -> Iterator[ParquetFile]:
    """Open a parquet file for reading.

    Python opens it, so that the record of a report's inputs sees it.

    Raises
    ------
    DataError
        If it cannot be read or is no parquet file, also where that shows only while it is read.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with file.open("rb") as opened, parquet.ParquetFile(opened) as content:
            yield content
    except OSError as error:
        if error.errno is not None:
            raise unreadable(error, file) from None
        raise _broken(error, file, mend) from None
    except (pa.ArrowException, ValueError) as error:
        raise _broken(error, file, mend) from None


def _broken(error: Exception, file: Path, mend: str) -> DataError:
    reason = str(error).split("\n", 1)[0][:200]
    return DataError(f"not a parquet file that can be read ({reason})", file=file, mend=mend)

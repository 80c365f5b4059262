"""Names of the files and variables that a report run and the notebook in it agree on."""

MANIFEST = "manifest.json"  # inputs and outputs by digest; written last
SUMMARY = "summary.json"  # a few values for the index, left by the notebook
FAILED = "failed"  # folder of what failed runs got to
ERROR = "error.json"  # in it: what went wrong
LOCK = ".lock"  # held while reports are made
BUILDING = ".building-"  # prefix of folders in the making
INDEX_IN_THE_MAKING = ".index-"  # prefix of the front page in the making
READ_LOG = ".reads"  # what the kernel read, in a folder in the making

OUTPUT_VARIABLE = "FAULTBOOK_OUTPUT"  # the folder of the report in the making; unset in JupyterLab
READ_LOG_VARIABLE = "FAULTBOOK_READ_LOG"


def escape_name(name: str) -> str:
    """A file name as one line of the log of reads."""
    return name.replace("\\", "\\\\").replace("\n", "\\n")


def unescape_name(line: str) -> str:
    """The file name that `escape_name` wrote."""
    return "\\".join(part.replace("\\n", "\n") for part in line.split("\\\\"))

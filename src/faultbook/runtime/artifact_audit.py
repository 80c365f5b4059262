"""A whole store of artifacts read again, and what is wrong with it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat

from faultbook.runtime import artifact_index
from faultbook.runtime.artifact_folder import ArtifactFolder, names
from faultbook.runtime.references import SHA256, ArtifactError

FINDINGS = ("missing", "altered", "not_a_file", "permission", "not_indexed", "left_over", "unknown_name", "index_line")


def verify(folder: ArtifactFolder) -> list[dict[str, str]]:
    """Read everything and list what is wrong; see `ArtifactStore.verify`."""
    with folder.place() as root, folder.held(root, fcntl.LOCK_EX) as lock:
        lines, broken = artifact_index.read(folder, root)
        findings = [_finding("index_line", str(number), problem) for number, problem in broken]
        digests, others = listed(folder, root)
        findings += others
        with folder.place("tmp", root) as place:
            findings += [_finding("left_over", f"tmp/{name}", "a put ended early") for name in names(place)]
        fcntl.flock(lock, fcntl.LOCK_SH)  # while all is read, others may put in again, but not remove
        modes = artifact_index.modes(lines)
        findings += [_finding("missing", name, "there is no file") for name in modes.keys() - set(digests)]
        with folder.place("objects", root) as objects:
            for sha256 in digests:
                findings += _checked(folder, sha256, objects, modes.get(sha256))
    return sorted(findings, key=lambda found: (found["finding"], found["artifact"]))


def listed(folder: ArtifactFolder, root: int) -> tuple[list[str], list[dict[str, str]]]:
    """All digests in order, and findings on what has another name."""
    digests, findings = [], []
    with folder.place("objects", root) as objects:
        for shard in names(objects):
            try:
                with folder.place(shard, objects) as place:
                    found = names(place)
            except ArtifactError as error:
                findings.append(_finding("not_a_file", f"objects/{shard}", error.problem))
                continue
            digests += [shard + name for name in found if len(shard) == 2 and SHA256.fullmatch(shard + name)]
            others = [name for name in found if len(shard) != 2 or not SHA256.fullmatch(shard + name)]
            findings += [_finding("unknown_name", f"objects/{shard}/{name}", "no digest") for name in others]
    return digests, findings


def _checked(folder: ArtifactFolder, sha256: str, objects: int, mode: int | None) -> list[dict[str, str]]:
    found = [_finding("not_indexed", sha256, "no line of the index names it")] if mode is None else []
    try:
        with folder.place(sha256[:2], objects) as place, folder.file(sha256, place) as file:
            real = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode is not None and real & ~mode:
                found.append(_finding("permission", sha256, f"its mode is {real:04o} where {mode:04o} was asked for"))
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                found.append(_finding("altered", sha256, "its content has another digest"))
    except ArtifactError as error:
        found.append(_finding("not_a_file", sha256, error.problem))
    except OSError as error:
        found.append(_finding("altered", sha256, f"it cannot be read to its end ({error.strerror})"))
    return found


def _finding(finding: str, artifact: str, detail: str) -> dict[str, str]:
    return {"finding": finding, "artifact": artifact, "detail": detail}

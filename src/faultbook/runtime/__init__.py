"""How runs are owned, timed, admitted, recorded and ended: small parts, each usable alone."""

from faultbook.runtime.admission import Admission
from faultbook.runtime.artifacts import ArtifactStore
from faultbook.runtime.calls import Answer, Caller
from faultbook.runtime.children import Child
from faultbook.runtime.contract import Contract, Denial, Denied, check
from faultbook.runtime.deadline import Deadline, DeadlineExceeded
from faultbook.runtime.journal import Journal, verify
from faultbook.runtime.lease import Lease, inspect
from faultbook.runtime.ledger import Ledger
from faultbook.runtime.provider_input import Capabilities, project
from faultbook.runtime.redaction import redacted
from faultbook.runtime.routing import route
from faultbook.runtime.run import Run
from faultbook.runtime.segments import Segments
from faultbook.runtime.settlement import Settlement, settle
from faultbook.runtime.termination import Observation, Termination, classify

__all__ = [
    "Admission",
    "Answer",
    "ArtifactStore",
    "Caller",
    "Capabilities",
    "Child",
    "Contract",
    "Deadline",
    "DeadlineExceeded",
    "Denial",
    "Denied",
    "Journal",
    "Lease",
    "Ledger",
    "Observation",
    "Run",
    "Segments",
    "Settlement",
    "Termination",
    "check",
    "classify",
    "inspect",
    "project",
    "redacted",
    "route",
    "settle",
    "verify",
]

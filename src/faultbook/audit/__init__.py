"""Printed numbers held against arithmetic."""

from faultbook.audit.cells import STATUSES, Finding
from faultbook.audit.judge import as_json, audit, check_relations, evaluate
from faultbook.audit.read import read_reported
from faultbook.audit.relations import read_relations

__all__ = ["STATUSES", "Finding", "as_json", "audit", "check_relations", "evaluate", "read_relations", "read_reported"]

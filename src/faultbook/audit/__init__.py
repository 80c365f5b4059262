"""Printed numbers held against arithmetic."""

from faultbook.audit.cells import Finding
from faultbook.audit.judge import audit, check_relations, evaluate
from faultbook.audit.read import read_reported
from faultbook.audit.relations import read_relations

__all__ = ["Finding", "audit", "check_relations", "evaluate", "read_relations", "read_reported"]

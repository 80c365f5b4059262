"""Run notebooks headlessly and publish them as reports."""

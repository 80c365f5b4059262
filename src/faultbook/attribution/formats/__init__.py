"""The formats in which logs, annotations and predictions are published, one module a family."""

"""faultbook: what does a failure score of an AI agent really say?"""

__version__ = "0.1.0"

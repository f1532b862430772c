"""The write side's use cases and every way in: MCP over stdio and the command line."""

__version__ = "0.1.0"

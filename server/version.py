"""The version of the program, for those of its modules that must not import the whole package."""

from typing import Final

VERSION: Final = "0.1.0"

"""A resource: something to read under a URI that a client puts before the model as it is.

A template stands for one resource for each value of its variable. Reading is a plain function from
a `Call` to text; it knows neither the protocol nor the transport.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from server.completion import Complete
from server.tool import Call

JSON: Final = "application/json"


class Resource(Struct, frozen=True, kw_only=True):
    """A resource as a client shows it.

    Attributes:
        uri: What it is read by.
        name: Its name for machines.
        title: Its name for people.
        description: What it holds.
        mime_type: What kind of text it is.
        read: Makes the text; raises UseCaseError if it cannot now.
    """

    uri: str
    name: str
    title: str
    description: str
    mime_type: str
    read: Callable[[Call], str]


class ResourceTemplate(Struct, frozen=True, kw_only=True):
    """One resource for each value of a variable that ends the URI.

    Attributes:
        prefix: The URI up to the variable.
        variable: The variable's name.
        name: Its name for machines.
        title: Its name for people.
        description: What the resources hold.
        mime_type: What kind of text they are.
        complete: Finishes a value that is being typed.
        read: Makes the text for a value; raises NotFoundError if there is none for it, another
            UseCaseError if it cannot now.
    """

    prefix: str
    variable: str
    name: str
    title: str
    description: str
    mime_type: str
    complete: Complete
    read: Callable[[str, Call], str]

    @property
    def uri_template(self) -> str:
        """The URI with its variable in braces, as RFC 6570 has it."""
        return f"{self.prefix}{{{self.variable}}}"

    def match(self, uri: str) -> Resource | None:
        """Return the resource that a URI names; None if it is not of this template.

        Percent-encoding is undone. What needs it and has it not, as a blank, is taken as it is.
        """
        from urllib.parse import unquote  # noqa: PLC0415 - a session that reads none needs it not

        if not uri.startswith(self.prefix) or len(uri) == len(self.prefix):
            return None
        try:
            value = unquote(uri.removeprefix(self.prefix), errors="strict")
        except UnicodeDecodeError:
            return None
        return Resource(
            uri=uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
            read=lambda call: self.read(value, call),
        )

"""The methods over prompts, and the completion of their arguments and of template variables."""

from collections.abc import Mapping
from typing import Final

from server import rpc
from server.completion import Complete, Completion
from server.method import (
    LIST_TTL_MS,
    JsonObject,
    Method,
    Request,
    object_param,
    require_first_page,
    text_param,
)
from server.prompt import Prompt
from server.resource import Resource, ResourceTemplate

ARGUMENT_CHARACTERS_MAX: Final = 100_000
"""The longest argument of a prompt."""


class PromptMethods:
    """Lists and writes the prompts.

    Args:
        prompts: The prompts, in the order in which clients see them.
    """

    def __init__(self, prompts: tuple[Prompt, ...]) -> None:
        self._prompts = {prompt.name: prompt for prompt in prompts}

    def table(self) -> dict[str, Method]:
        """Return the methods by name."""
        return {
            "prompts/list": Method(
                run=self._list, ttl_ms=LIST_TTL_MS, capability=("prompts", {"listChanged": False})
            ),
            "prompts/get": Method(run=self._get),
        }

    def _list(self, request: Request) -> JsonObject:
        require_first_page(request)
        return {"prompts": [_entry(prompt) for prompt in self._prompts.values()]}

    def _get(self, request: Request) -> JsonObject:
        name = text_param(request.params, "name")
        given = object_param(request.params, "arguments")
        prompt = self._prompts.get(name)
        if prompt is None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"Unknown prompt: {rpc.echo(name)}.")
        text = prompt.write(_checked(prompt, given))
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": prompt.description, "messages": [message]}


class CompletionMethods:
    """Completes what is being typed for a prompt or a template.

    Args:
        prompts: The prompts.
        resources: The resources; nothing about them can be completed.
        templates: The templates.
    """

    def __init__(
        self,
        prompts: tuple[Prompt, ...],
        resources: tuple[Resource, ...],
        templates: tuple[ResourceTemplate, ...],
    ) -> None:
        self._prompts: dict[str, Mapping[str, Complete | None]] = {
            prompt.name: {argument.name: argument.complete for argument in prompt.arguments}
            for prompt in prompts
        }
        self._uris: dict[str, Mapping[str, Complete | None]] = {
            **{resource.uri: {} for resource in resources},
            **{
                template.uri_template: {template.variable: template.complete}
                for template in templates
            },
        }

    def table(self) -> dict[str, Method]:
        """Return the methods by name."""
        method = Method(run=self._complete, slow=True, capability=("completions", {}))
        return {"completion/complete": method}

    def _complete(self, request: Request) -> JsonObject:
        ref = object_param(request.params, "ref")
        argument = object_param(request.params, "argument")
        object_param(object_param(request.params, "context"), "arguments")
        name, value = text_param(argument, "name"), text_param(argument, "value")
        choices = self._referred(ref)
        if name not in choices:
            text = f"There is no argument {rpc.echo(name)} here."
            raise rpc.RpcError(rpc.INVALID_PARAMS, text)
        complete = choices[name]
        found = Completion() if complete is None else complete(value, request.call)
        has_more = found.total > len(found.values)
        return {"completion": {"values": found.values, "total": found.total, "hasMore": has_more}}

    def _referred(self, ref: JsonObject) -> Mapping[str, Complete | None]:
        """Return what can be completed of the prompt or template that a reference names.

        Raises:
            rpc.RpcError: If it names none.
        """
        match ref.get("type"):
            case "ref/prompt":
                name, known = text_param(ref, "name"), self._prompts
            case "ref/resource":
                name, known = text_param(ref, "uri"), self._uris
            case _:
                text = "`ref` must be of type ref/prompt or ref/resource."
                raise rpc.RpcError(rpc.INVALID_PARAMS, text)
        if name not in known:
            text = f"There is no prompt or resource template {rpc.echo(name)}."
            raise rpc.RpcError(rpc.INVALID_PARAMS, text)
        return known[name]


def _entry(prompt: Prompt) -> JsonObject:
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": [
            {
                "name": argument.name,
                "description": argument.description,
                "required": argument.required,
            }
            for argument in prompt.arguments
        ],
    }


def _checked(prompt: Prompt, given: JsonObject) -> dict[str, str]:
    """Return the arguments given for a prompt; a blank one counts as not given.

    Raises:
        rpc.RpcError: If one is missing, unknown, too long or not text.
    """
    known = {argument.name: argument for argument in prompt.arguments}
    for name, value in given.items():
        if name not in known:
            accepted = ", ".join(known)
            text = f"Unknown argument {rpc.echo(name)}; accepted: {accepted}."
            raise rpc.RpcError(rpc.INVALID_PARAMS, text)
        if not isinstance(value, str) or len(value) > ARGUMENT_CHARACTERS_MAX:
            text = f"`{name}` must be a string of at most {ARGUMENT_CHARACTERS_MAX:,} characters."
            raise rpc.RpcError(rpc.INVALID_PARAMS, text)
    said = {name: value for name, value in given.items() if value.strip()}
    for argument in prompt.arguments:
        if argument.required and argument.name not in said:
            text = f"`{argument.name}` is missing or blank: {argument.description}."
            raise rpc.RpcError(rpc.INVALID_PARAMS, text)
    return said

"""The samples on the official SDK: `python -m tests.support.sdk_server`."""

import os
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from server.completion import Completion
from server.errors import InvalidArgumentsError, NotFoundError, UseCaseError
from server.resource import Resource, ResourceTemplate
from server.schema import convert, json_schema
from server.tool import Call, Tool
from tests.support import sample_resources, sample_tools

_SERVED = (*sample_tools.TOOLS, sample_resources.TURN)
_TOOLS = {tool.name: tool for tool in _SERVED}
_RESOURCES = {resource.uri: resource for resource in sample_resources.RESOURCES}
_PROMPTS = {prompt.name: prompt for prompt in sample_resources.PROMPTS}
_BOARD = "sample://board"

_Context = ServerRequestContext[Any]
_Page = types.PaginatedRequestParams | None


def _first_page(params: _Page) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(code=types.INVALID_PARAMS, message="unknown cursor")


async def _list(_: _Context, params: _Page) -> types.ListToolsResult:
    _first_page(params)
    return types.ListToolsResult(tools=[_described(tool) for tool in _SERVED])


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=json_schema(tool.args),
        output_schema=json_schema(tool.result),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


async def _call(context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    tool = _TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=types.INVALID_PARAMS, message="unknown tool")

    def report(done: float, total: float | None, text: str) -> None:
        anyio.from_thread.run(context.session.report_progress, done, total, text or None)

    client = context.session.client_params
    call = Call(actor_name=client.client_info.name if client else "", report=report)
    try:
        result = await anyio.to_thread.run_sync(
            lambda: tool.run(convert(params.arguments or {}, tool.args), call)
        )
    except UseCaseError as error:
        body: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.details:
            body["details"] = error.details
        return _result({"error": body}, is_error=True)
    except BaseException:  # noqa: BLE001 - the sample tools fail in every way
        return _result({"error": {"code": "internal_error", "message": ""}}, is_error=True)
    if tool is sample_resources.TURN:
        await _turned(context)
    return _result(msgspec.to_builtins(result), is_error=False)


def _result(content: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = msgspec.json.encode(content).decode()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=content,
        is_error=is_error,
    )


# ---------------------------------------------------------------------------- resources


async def _list_resources(_: _Context, params: _Page) -> types.ListResourcesResult:
    _first_page(params)
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=resource.uri, **_shown(resource))
            for resource in sample_resources.RESOURCES
        ]
    )


async def _list_templates(_: _Context, params: _Page) -> types.ListResourceTemplatesResult:
    _first_page(params)
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(uri_template=template.uri_template, **_shown(template))
            for template in sample_resources.TEMPLATES
        ]
    )


def _shown(thing: Resource | ResourceTemplate) -> dict[str, Any]:
    return {
        "name": thing.name,
        "title": thing.title,
        "description": thing.description,
        "mime_type": thing.mime_type,
        "annotations": types.Annotations(audience=["user", "assistant"]),
    }


async def _read(_: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    resource, text = _found(params.uri)
    content = types.TextResourceContents(uri=params.uri, mime_type=resource.mime_type, text=text)
    return types.ReadResourceResult(contents=[content])


def _found(uri: str) -> tuple[Resource, str]:
    resource = _RESOURCES.get(uri) or sample_resources.TEMPLATES[0].match(uri)
    if resource is None:
        raise MCPError(code=types.INVALID_PARAMS, message="", data={"uri": uri})
    try:
        return resource, resource.read(Call())
    except (NotFoundError, InvalidArgumentsError) as error:
        raise MCPError(code=types.INVALID_PARAMS, message="", data={"uri": uri}) from error
    except UseCaseError as error:
        raise MCPError(code=types.INTERNAL_ERROR, message="", data={"uri": uri}) from error


_subscribed: set[str] = set()
_bus = InMemorySubscriptionBus()
_listener = ListenHandler(_bus, max_subscriptions=100)


async def _subscribe(_: _Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    _found(params.uri)
    _subscribed.add(params.uri)
    return types.EmptyResult()


async def _unsubscribe(_: _Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    _subscribed.discard(params.uri)
    return types.EmptyResult()


async def _listen(
    context: _Context, params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    """Grant what there is; by itself the SDK grants whatever is asked for."""
    uris = params.notifications.resource_subscriptions or []
    there = [uri for uri in uris if uri in _RESOURCES or sample_resources.TEMPLATES[0].match(uri)]
    wanted = types.SubscriptionFilter(resource_subscriptions=there)
    return await _listener(context, params.model_copy(update={"notifications": wanted}))


async def _turned(context: _Context) -> None:
    if _BOARD in _subscribed:
        await context.session.send_resource_updated(_BOARD)
    await _bus.publish(ResourceUpdated(uri=_BOARD))


# ---------------------------------------------------------------------------- prompts


async def _list_prompts(_: _Context, params: _Page) -> types.ListPromptsResult:
    _first_page(params)
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=prompt.name,
                title=prompt.title,
                description=prompt.description,
                arguments=[
                    types.PromptArgument(
                        name=argument.name,
                        description=argument.description,
                        required=argument.required,
                    )
                    for argument in prompt.arguments
                ],
            )
            for prompt in sample_resources.PROMPTS
        ]
    )


async def _get_prompt(_: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    prompt = _PROMPTS.get(params.name)
    given = params.arguments or {}
    known = {argument.name: argument for argument in prompt.arguments} if prompt else {}
    required = {argument.name for argument in known.values() if argument.required}
    if prompt is None or not given.keys() <= known.keys() or not required <= given.keys():
        raise MCPError(code=types.INVALID_PARAMS, message="no such prompt or argument")
    text = types.TextContent(type="text", text=prompt.write(given))
    return types.GetPromptResult(
        description=prompt.description,
        messages=[types.PromptMessage(role="user", content=text)],
    )


async def _complete(_: _Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    name, value = params.argument.name, params.argument.value
    template = sample_resources.TEMPLATES[0]
    if isinstance(params.ref, types.PromptReference):
        prompt = _PROMPTS.get(params.ref.name)
        choices = {each.name: each.complete for each in prompt.arguments} if prompt else {}
    else:
        known = params.ref.uri == template.uri_template
        choices = {template.variable: template.complete} if known else {}
    if name not in choices:
        raise MCPError(code=types.INVALID_PARAMS, message="nothing to complete")
    complete = choices[name]
    found = Completion() if complete is None else complete(value, Call())
    return types.CompleteResult(
        completion=types.Completion(
            values=list(found.values),
            total=found.total,
            has_more=found.total > len(found.values),
        )
    )


async def _serve() -> None:
    hint = CacheHint(ttl_ms=300_000, scope="private")
    server: Server[Any] = Server(
        sample_tools.NAME,
        title=sample_tools.TITLE,
        version=sample_tools.VERSION,
        instructions=sample_tools.INSTRUCTIONS,
        on_list_tools=_list,
        on_call_tool=_call,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_unsubscribe,
        on_subscriptions_listen=_listen,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
        cache_hints={
            "tools/list": hint,
            "resources/list": hint,
            "resources/templates/list": hint,
            "resources/read": CacheHint(ttl_ms=0, scope="private"),
            "prompts/list": hint,
            "server/discover": hint,
        },
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
    # What the tools left in a buffer must not follow the messages.
    os._exit(0)


if __name__ == "__main__":
    anyio.run(_serve)

"""The methods over resources: `resources/...`, and subscriptions to them in both eras.

Legacy clients subscribe to one resource a request. Modern ones send `subscriptions/listen`, which
is acknowledged at once, stays open while its notifications come, and is answered when the server
ends it. Lists never change while a server runs, so nobody is told of a changed list.
"""

import threading
from typing import Final

from server import rpc
from server.errors import UseCaseError
from server.method import (
    LIST_TTL_MS,
    META,
    Channel,
    JsonObject,
    Method,
    Request,
    object_param,
    refusal,
    require_first_page,
    text_param,
)
from server.resource import Resource, ResourceTemplate
from server.watcher import Watch, Watcher

SUBSCRIPTIONS_MAX: Final = 100
"""Resources one client may be subscribed to at once; an open request to listen counts as one too
if it names none."""

_SUBSCRIPTION_ID: Final = META + "subscriptionId"
_UPDATED: Final = "notifications/resources/updated"
_LIST_FLAGS: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


class ResourceMethods:
    """Lists, reads and watches the resources.

    Args:
        resources: The resources, in the order in which clients see them.
        templates: The templates, likewise.
        watcher: Looks for changes; None if nobody may subscribe.
        channel: Where notifications go.
    """

    def __init__(
        self,
        resources: tuple[Resource, ...],
        templates: tuple[ResourceTemplate, ...],
        *,
        watcher: Watcher | None,
        channel: Channel,
    ) -> None:
        self._resources = {resource.uri: resource for resource in resources}
        self._templates = templates
        self._watcher = watcher
        self._channel = channel
        self._lock = threading.Lock()
        self._subscribed: dict[str, Watch] = {}
        self._streams: dict[rpc.RequestId, tuple[Watch, ...]] = {}

    def table(self) -> dict[str, Method]:
        """Return the methods by name."""
        watched = self._watcher is not None
        capability = ("resources", {"subscribe": watched, "listChanged": False})
        methods = {
            "resources/list": Method(run=self._list, ttl_ms=LIST_TTL_MS, capability=capability),
            "resources/templates/list": Method(run=self._list_templates, ttl_ms=LIST_TTL_MS),
            "resources/read": Method(run=self._read, slow=True, ttl_ms=0),
        }
        if watched:
            methods |= {
                "resources/subscribe": Method(run=self._subscribe, modern=False, slow=True),
                "resources/unsubscribe": Method(run=self._unsubscribe, modern=False),
                "subscriptions/listen": Method(run=self._listen, legacy=False, slow=True),
            }
        return methods

    def _list(self, request: Request) -> JsonObject:
        require_first_page(request)
        listed = [
            {"uri": resource.uri, **_described(resource)} for resource in self._resources.values()
        ]
        return {"resources": listed}

    def _list_templates(self, request: Request) -> JsonObject:
        require_first_page(request)
        listed = [
            {"uriTemplate": template.uri_template, **_described(template)}
            for template in self._templates
        ]
        return {"resourceTemplates": listed}

    def _read(self, request: Request) -> JsonObject:
        resource = self._named(text_param(request.params, "uri"))
        try:
            text = resource.read(request.call)
        except UseCaseError as error:
            raise refusal(error, uri=rpc.echo(resource.uri)) from error
        content = {"uri": resource.uri, "mimeType": resource.mime_type, "text": text}
        return {"contents": [content]}

    def _named(self, uri: str) -> Resource:
        """Return the resource of a URI.

        Raises:
            rpc.RpcError: If there is none.
        """
        found = self._resources.get(uri)
        for template in self._templates:
            found = found or template.match(uri)
        if found is None:
            text = "There is no such resource. `resources/list` and `resources/templates/list` say "
            text += "what there is."
            raise rpc.RpcError(rpc.INVALID_PARAMS, text, data={"uri": rpc.echo(uri)})
        return found

    # ------------------------------------------------------------------ subscriptions

    def _subscribe(self, request: Request) -> JsonObject:
        uri = text_param(request.params, "uri")
        with self._lock:
            if uri in self._subscribed:
                return {}
            self._require_room(1)

        def tell() -> None:
            self._channel.announce(_UPDATED, {"uri": uri})

        watch = self._looked(Watch(self._named(uri).read, tell), uri, request)
        with self._lock:
            if uri not in self._subscribed:
                self._require_room(1)
                self._watching.add(watch)
                self._subscribed[uri] = watch
        return {}

    def _unsubscribe(self, request: Request) -> JsonObject:
        uri = text_param(request.params, "uri")
        with self._lock:
            watch = self._subscribed.pop(uri, None)
        if watch is not None:
            self._watching.drop(watch)
        return {}

    def _listen(self, request: Request) -> None:
        uris = _wanted(request.params)
        with self._lock:
            self._require_room(max(1, len(uris)))
        watches = self._honored(uris, request)
        granted: JsonObject = {"resourceSubscriptions": list(watches)} if watches else {}
        kept = tuple(watches.values())
        with self._lock:
            self._require_room(max(1, len(kept)))
            self._streams[request.id] = kept
        try:
            # Entered for good: it stays open until it is taken back or the server ends.
            request.call.on_cancel(lambda: self._end(request)).__enter__()
            self._acknowledge(request, granted)
            self._watching.add(*kept)
        except BaseException:
            self._forget(request)
            raise
        if request.call.cancelled:
            # It may have been ended before there was anything to drop.
            self._watching.drop(*kept)

    def _acknowledge(self, request: Request, granted: JsonObject) -> None:
        params = {"notifications": granted, "_meta": {_SUBSCRIPTION_ID: request.id}}
        self._channel.notify(request, "notifications/subscriptions/acknowledged", params)

    def _honored(self, uris: tuple[str, ...], request: Request) -> dict[str, Watch]:
        """Look at the resources that exist; the others are left out of the acknowledgement."""
        watches = {}
        for uri in uris:
            params = {"uri": uri, "_meta": {_SUBSCRIPTION_ID: request.id}}

            def tell(params: JsonObject = params) -> None:
                self._channel.notify(request, _UPDATED, params)

            try:
                watches[uri] = self._looked(Watch(self._named(uri).read, tell), uri, request)
            except rpc.RpcError as error:
                if error.code != rpc.INVALID_PARAMS:
                    raise
        return watches

    def _looked(self, watch: Watch, uri: str, request: Request) -> Watch:
        try:
            self._watching.look(watch, request.call)
        except UseCaseError as error:
            raise refusal(error, uri=rpc.echo(uri)) from error
        return watch

    def _end(self, request: Request) -> None:
        self._forget(request)
        self._channel.finish(request, {"_meta": {_SUBSCRIPTION_ID: request.id}})

    def _forget(self, request: Request) -> None:
        with self._lock:
            kept = self._streams.pop(request.id, ())
        self._watching.drop(*kept)

    def _require_room(self, wanted: int) -> None:
        listening = sum(max(1, len(kept)) for kept in self._streams.values())
        if len(self._subscribed) + listening + wanted > SUBSCRIPTIONS_MAX:
            text = f"At most {SUBSCRIPTIONS_MAX} resources may be subscribed to at once."
            raise rpc.RpcError(rpc.INTERNAL_ERROR, text)

    @property
    def _watching(self) -> Watcher:
        assert self._watcher is not None, "the methods that need it are not in the table"
        return self._watcher


def _described(thing: Resource | ResourceTemplate) -> JsonObject:
    return {
        "name": thing.name,
        "title": thing.title,
        "description": thing.description,
        "mimeType": thing.mime_type,
        "annotations": {"audience": ["user", "assistant"]},
    }


def _wanted(params: JsonObject) -> tuple[str, ...]:
    """Return the URIs a request to listen names.

    Raises:
        rpc.RpcError: If it does not say properly what it wants.
    """
    if params.get("notifications") is None:
        raise rpc.RpcError(rpc.INVALID_PARAMS, "`notifications` must be an object.")
    wanted = object_param(params, "notifications")
    for flag in _LIST_FLAGS:
        if not isinstance(wanted.get(flag), bool | None):
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"`{flag}` must be true or false.")
    uris = wanted.get("resourceSubscriptions")
    if uris is None:
        return ()
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        text = "`resourceSubscriptions` must be a list of URIs."
        raise rpc.RpcError(rpc.INVALID_PARAMS, text)
    return tuple(dict.fromkeys(uris))

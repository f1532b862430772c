"""Resources, prompts and subscriptions over the protocol without a transport."""

import json
import threading
from collections.abc import Iterator

import msgspec
import pytest

from server.errors import BusyError
from server.method import JsonObject
from server.prompt import Prompt
from server.protocol import Connection, Job, ServerInfo
from server.resource import Resource
from server.tool import Call
from server.watcher import Watcher
from tests.support import sample_resources
from tests.support.peer import Json, cancelled, initialize, modern, request

UPDATED = "notifications/resources/updated"
ID = "io.modelcontextprotocol/subscriptionId"


class Still(Watcher):
    """A watcher whose rounds are run by hand."""

    def _loop(self) -> None:
        pass


class Line:
    """A connection over resources that are texts in `texts`; a change is told when asked for."""

    def __init__(self) -> None:
        self.sent: list[Json] = []
        self.texts = {f"t://{number}": "old" for number in range(150)}
        self.position = 0
        self.fault: Exception | None = None
        self.watcher = Still(lambda _: self.position, log=self.sent.append)  # type: ignore[arg-type]
        info = ServerInfo(
            name="n",
            title="t",
            version="1",
            instructions="",
            tools=(),
            resources=tuple(self._resource(uri) for uri in self.texts),
            prompts=sample_resources.PROMPTS,
        )
        self.connection = Connection(
            info,
            write=lambda data: self.sent.append(json.loads(data)),
            log=self.sent.append,  # type: ignore[arg-type]
            watcher=self.watcher,
        )
        self.ask(initialize("handshake"))

    def _resource(self, uri: str) -> Resource:
        def read(call: Call) -> str:
            call.check()
            if self.fault is not None:
                raise self.fault
            return self.texts[uri]

        return Resource(
            uri=uri, name=uri, title="", description="", mime_type="text/plain", read=read
        )

    def receive(self, message: Json) -> Job | None:
        return self.connection.receive(json.dumps(message).encode())

    def ask(self, message: Json) -> list[Json]:
        """Send a request and run it; returns what was sent for it."""
        before = len(self.sent)
        job = self.receive(message)
        if job is not None:
            job.run()
        return self.sent[before:]

    def listen(self, request_id: object, *uris: str) -> list[Json]:
        wanted = {"resourceSubscriptions": list(uris)}
        return self.ask(modern(request_id, "subscriptions/listen", notifications=wanted))

    def change(self, uri: str) -> list[Json]:
        """Change a text; returns what is sent because of it."""
        before = len(self.sent)
        self.position += 1
        self.texts[uri] += "!"
        self.watcher.run_once()
        return self.sent[before:]


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line()
    yield line
    line.watcher.close(60)


def uris(messages: list[Json]) -> list[str]:
    assert all(message["method"] == UPDATED for message in messages)
    return [message["params"]["uri"] for message in messages]


def test_both_eras_are_told_on_one_connection(line: Line) -> None:
    line.ask(request(1, "resources/subscribe", uri="t://1"))
    line.listen("x", "t://1", "t://2")

    legacy, stream = line.change("t://1")

    assert legacy["params"] == {"uri": "t://1"}
    assert stream["params"] == {"uri": "t://1", "_meta": {ID: "x"}}
    assert uris(line.change("t://2")) == ["t://2"]
    assert uris(line.change("t://3")) == []


def test_subscribing_twice_is_told_once(line: Line) -> None:
    for number in range(2):
        (answer,) = line.ask(request(number, "resources/subscribe", uri="t://1"))
        assert answer["result"] == {}

    assert uris(line.change("t://1")) == ["t://1"]


def test_a_subscription_that_was_ended_may_be_made_again(line: Line) -> None:
    line.ask(request(1, "resources/subscribe", uri="t://1"))
    line.ask(request(2, "resources/unsubscribe", uri="t://1"))
    assert line.change("t://1") == []

    line.ask(request(3, "resources/subscribe", uri="t://1"))

    assert uris(line.change("t://1")) == ["t://1"]


def test_a_stream_that_was_taken_back_gets_nothing_more_and_its_id_is_free(line: Line) -> None:
    line.listen(1, "t://1")
    refused = line.listen(1, "t://1")
    assert refused[0]["error"]["code"] == -32600
    line.receive(cancelled(1))
    assert line.change("t://1") == []

    (acknowledged,) = line.listen(1, "t://2")

    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": ["t://2"]}
    assert uris(line.change("t://2")) == ["t://2"]


def test_a_stream_taken_back_before_it_began_never_begins(line: Line) -> None:
    wanted = {"resourceSubscriptions": ["t://1"]}
    job = line.receive(modern(1, "subscriptions/listen", notifications=wanted))
    line.receive(cancelled(1))
    assert job is not None
    before = len(line.sent)

    job.run()

    assert line.sent[before:] == line.change("t://1") == []
    assert line.watcher._watches == {}


@pytest.mark.parametrize("moment", ["while it is looked at", "as it is acknowledged"])
@pytest.mark.parametrize("by", ["its client", "the end of the server"])
def test_a_stream_ended_while_it_begins_leaves_nothing_watched(
    line: Line, moment: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end() -> None:
        if by == "its client":
            line.receive(cancelled(1))
        else:
            line.connection.cancel_all()

    if moment == "while it is looked at":
        look = line.watcher.look

        def look_and_end(*arguments: object) -> None:
            look(*arguments)  # type: ignore[arg-type]
            end()

        monkeypatch.setattr(line.watcher, "look", look_and_end)
    else:
        notify = line.connection.notify

        def end_and_notify(*arguments: object) -> None:
            end()
            notify(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(line.connection, "notify", end_and_notify)

    messages = line.listen(1, "t://1")

    assert [message.get("id") for message in messages] == ([] if by == "its client" else [1])
    assert line.watcher._watches == {}
    monkeypatch.undo()
    assert line.listen(1, "t://1")[0]["method"] == "notifications/subscriptions/acknowledged"


def test_every_open_stream_is_answered_at_the_end(line: Line) -> None:
    line.listen(1, "t://1")
    line.listen("b")
    before = len(line.sent)

    line.connection.cancel_all()
    line.connection.cancel_all()

    first, second = line.sent[before:]
    assert (first["id"], second["id"]) == (1, "b")
    assert first["result"]["resultType"] == "complete"
    assert first["result"]["_meta"][ID] == 1
    assert first["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "n"


def test_a_client_may_be_subscribed_to_so_much_and_no_more(line: Line) -> None:
    def code(messages: list[Json]) -> int | None:
        error: JsonObject = messages[0].get("error", {})
        return error.get("code")

    every = list(line.texts)
    assert code(line.listen("too many", *every[:101])) == -32603
    line.listen("most", *every[:98])
    line.listen("none")
    assert code(line.ask(request(1, "resources/subscribe", uri=every[98]))) is None
    assert code(line.ask(request(2, "resources/subscribe", uri=every[98]))) is None

    refused = [
        code(line.ask(request(3, "resources/subscribe", uri=every[99]))),
        code(line.listen("one more", every[99])),
        code(line.listen("another")),
    ]

    assert refused == [-32603] * 3
    line.receive(cancelled("none"))
    assert code(line.listen("one more", every[99])) is None


def test_a_store_that_cannot_be_read_refuses_a_subscription(line: Line) -> None:
    line.fault = BusyError("Not now.", details={"seconds": 3})

    (legacy,) = line.ask(request(1, "resources/subscribe", uri="t://1"))
    (stream,) = line.listen(2, "t://1")

    for answer in (legacy, stream):
        assert answer["error"]["code"] == -32603
        assert answer["error"]["message"] == "Not now."
        assert answer["error"]["data"] == {"uri": "t://1", "code": "busy", "seconds": 3}
    assert line.watcher._watches == {}


def test_without_a_thread_to_be_had_a_subscription_is_refused_and_leaves_nothing(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        *_, legacy = line.ask(request(1, "resources/subscribe", uri="t://1"))
        acknowledged, _, stream = line.listen(2, "t://1")
    before = len(line.sent)
    line.connection.cancel_all()

    assert legacy["error"]["code"] == stream["error"]["code"] == -32603
    assert "id" not in acknowledged
    assert line.sent[before:] == []
    assert line.watcher._watches == {}
    line.listen(2, *list(line.texts)[:100])
    assert uris(line.change("t://1")) == ["t://1"]


def test_of_two_subscriptions_at_once_one_is_made(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = line.watcher.look

    def look_and_subscribe(*arguments: object) -> None:
        monkeypatch.undo()
        look(*arguments)  # type: ignore[arg-type]
        line.ask(request(2, "resources/subscribe", uri="t://1"))

    monkeypatch.setattr(line.watcher, "look", look_and_subscribe)

    second, first = line.ask(request(1, "resources/subscribe", uri="t://1"))

    assert (first["id"], first["result"], second["id"], second["result"]) == (1, {}, 2, {})
    assert uris(line.change("t://1")) == ["t://1"]


def test_a_missing_resource_is_named_in_the_error(line: Line) -> None:
    (answer,) = line.ask(request(1, "resources/read", uri="t://nope"))

    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"] == {"uri": "t://nope"}


def test_a_reading_is_interrupted_by_its_cancellation(line: Line) -> None:
    job = line.receive(request(1, "resources/read", uri="t://1"))
    line.connection.cancel_all()
    assert job is not None

    job.run()

    assert line.sent[-1]["error"]["data"]["code"] == "cancelled"


def test_a_reading_may_not_be_kept_and_a_list_may(line: Line) -> None:
    (read,) = line.ask(modern(1, "resources/read", uri="t://1"))
    (listed,) = line.ask(modern(2, "resources/list"))

    kept = [(each["result"]["ttlMs"], each["result"]["cacheScope"]) for each in (read, listed)]
    assert kept == [(0, "private"), (300_000, "private")]


# ---------------------------------------------------------------------------- what is announced


def bare(**parts: object) -> Json:
    """Return the capabilities of a server that has these parts and nobody to watch."""
    sent: list[Json] = []
    info = ServerInfo(name="n", title="t", version="1", instructions="", tools=(), **parts)  # type: ignore[arg-type]
    connection = Connection(
        info, write=lambda data: sent.append(json.loads(data)), log=lambda _: None
    )
    connection.receive(json.dumps(initialize(1)).encode())
    connection.receive(json.dumps(request(2, "resources/subscribe", uri="sample://board")).encode())
    assert sent[1]["error"]["code"] == -32601
    capabilities: Json = sent[0]["result"]["capabilities"]
    del capabilities["tools"]
    return capabilities


def test_capabilities_follow_from_what_there_is() -> None:
    resources = {"resources": {"subscribe": False, "listChanged": False}}
    prompts = {"prompts": {"listChanged": False}}
    completions: Json = {"completions": {}}

    assert bare() == {}
    assert bare(resources=sample_resources.RESOURCES) == resources
    assert bare(templates=sample_resources.TEMPLATES) == {**resources, **completions}
    assert bare(prompts=sample_resources.PROMPTS) == {**prompts, **completions}


@pytest.mark.parametrize("name", ["resources", "templates", "prompts"])
def test_two_of_one_name_are_not_served(name: str) -> None:
    parts: dict[str, tuple[object, ...]] = {
        "resources": sample_resources.RESOURCES[:1],
        "templates": sample_resources.TEMPLATES,
        "prompts": sample_resources.PROMPTS[:1],
    }

    with pytest.raises(AssertionError):
        bare(**{name: parts[name] * 2})


# ---------------------------------------------------------------------------- prompts


def greeting(line: Line, arguments: object) -> Json:
    (answer,) = line.ask(request(1, "prompts/get", name="greet", arguments=arguments))
    return answer


def test_a_blank_argument_counts_as_none(line: Line) -> None:
    answer = greeting(line, {"whom": "Ada", "language": " "})

    assert answer["result"]["messages"][0]["content"]["text"] == "Greet Ada in any language."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "`whom` is missing or blank: Somebody."),
        ({"whom": " \n"}, "`whom` is missing or blank"),
        ({"whom": "x", "tone": "warm"}, "Unknown argument tone; accepted: whom, language."),
        ({"whom": "x" * 100_001}, "at most 100,000 characters"),
        ({"whom": ["x"]}, "`whom` must be a string"),
    ],
)
def test_wrong_arguments_are_refused_with_what_is_accepted(
    line: Line, arguments: Json, words: str
) -> None:
    error = greeting(line, arguments)["error"]

    assert error["code"] == -32602
    assert words in error["message"]


def test_a_prompt_that_fails_is_an_internal_error() -> None:
    def fail(_: object) -> str:
        raise ZeroDivisionError

    logged: list[str] = []
    sent: list[Json] = []
    prompt = Prompt(name="p", title="P", description="", arguments=(), write=fail)
    connection = Connection(
        ServerInfo(name="n", title="t", version="1", instructions="", tools=(), prompts=(prompt,)),
        write=lambda data: sent.append(json.loads(data)),
        log=logged.append,
    )

    connection.receive(json.dumps(modern(1, "prompts/get", name="p")).encode())

    assert sent[0]["error"]["code"] == -32603
    assert "ZeroDivisionError" in logged[0]


# ---------------------------------------------------------------------------- templates


@pytest.mark.parametrize(
    ("uri", "value"),
    [
        ("sample://page/first", "first"),
        ("sample://page/%D0%90%20b%2Fc%25", "А b/c%"),
        ("sample://page/a b/c", "a b/c"),
        ("sample://page/%zz", "%zz"),
        ("sample://page/%ff", None),
        ("sample://page/", None),
        ("sample://pages/first", None),
    ],
)
def test_a_template_takes_its_value_from_the_uri(uri: str, value: str | None) -> None:
    read: list[str] = []

    def spy(name: str, _: Call) -> str:
        read.append(name)
        return "text"

    found = msgspec.structs.replace(sample_resources.TEMPLATES[0], read=spy).match(uri)

    if found is not None:
        assert found.uri == uri
        found.read(Call())
    assert read == ([] if value is None else [value])

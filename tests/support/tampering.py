"""mnemolog under the public suite `agent-memory-integrity` (module `agmi`): its two adapters.

The suite writes through a tool's own interface, edits the tool's files behind its back, opens it
again and asks the tool, not the bytes, whether anything is wrong. What a tool says depends on which
of its files were edited and on which question is asked, so `Scene` names both, and
`tests.support.integrity` keeps what came out of each.

Everything genuine goes through `server.open_store`; every question is the read path of
`open_store` or the `mnemolog` command. No edit is known here: files are taken apart and put
together for whatever the suite does to them.
"""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from agmi.adapters.base import MemoryAdapter, Record
from agmi.adapters.semantic_base import MemoryItem, Retrieved, SemanticMemoryAdapter

from server import AddArgs, SearchArgs, open_store
from tests.cases.ways import CommandHost, Finished
from tests.support.store import MEMORY_DISK

Fields = dict[str, Any]

ACTORS: Final = ("planner", "reviewer")
"""Who writes, in turn: an edit may then lay words into another's mouth."""

MINE: Final = "default"
"""The workspace that is attacked."""
OTHERS: Final = "other"
"""The workspace that a genuine record is taken from."""


# ---------------------------------------------------------------------------- the questions


Run = Callable[..., Finished]
"""Runs the command on the home that is under edit."""


class Kept(NamedTuple):
    """What an operator keeps where the attacker cannot write, and asks `verify` to compare with.

    Attributes:
        note: Takes it after a write: runs the command, writes the file that is kept.
        options: The options of `verify` that name the file.
    """

    note: Callable[[Run, Path], None]
    options: Callable[[Path], list[str]]


def _note_head(run: Run, kept: Path) -> None:
    """Keep the head; only of a ledger that still holds the one before.

    Whoever noted the head of a ledger that was cut would take the cut for the truth.
    """
    if kept.exists():
        held = run("verify", *HEAD.options(kept))
        if held.status:
            raise RuntimeError(_complaint(held))
    kept.write_bytes(run("digest").out.splitlines()[0])


HEAD: Final = Kept(note=_note_head, options=lambda kept: ["--head", kept.read_text()])
"""The first line of `mnemolog digest`."""


class Asked(NamedTuple):
    """A store that is asked whether it is intact."""

    home: Path
    run: Run
    kept: Path
    """The file that its operator keeps elsewhere, where a scene has one."""


Question = Callable[[Asked], str | None]
"""Asks; returns what the tool complained of, None if of nothing."""


def searched(asked: Asked) -> str | None:
    """Read as an agent does, and take whatever is said beside the memories as a warning."""
    finished = asked.run("search", "heron", "--limit", "100", "--json")
    if finished.status or finished.err:
        return finished.err.decode().splitlines()[-1]
    return next(iter(json.loads(finished.out).get("notes", ())), None)


def examined(asked: Asked) -> str | None:
    """Ask `mnemolog health`, as `memory_health` is asked."""
    health = json.loads(asked.run("health", "--json").out)
    return None if health["status"] == "healthy" else str(health["issues"][0])


def verified(*options: str) -> Question:
    """Ask `mnemolog verify`."""
    return lambda asked: _complaint(asked.run("verify", *options))


def verified_against(kept: Kept) -> Question:
    """Ask `mnemolog verify` to compare with what is kept elsewhere."""
    return lambda asked: _complaint(asked.run("verify", *kept.options(asked.kept)))


def _complaint(finished: Finished) -> str | None:
    if finished.status == 0:
        return None
    assert finished.status == 1, finished.err.decode()
    lines = finished.out.decode().splitlines()
    return next(line for line in lines if not line.startswith(_NO_COMPLAINT))


_NO_COMPLAINT: Final = ("ledger: clean", "ledger: not proven", "ledger: note")
"""How lines begin that are in a report of a sound store too."""


# ---------------------------------------------------------------------------- the edited files


class Scene(NamedTuple):
    """What an attacker edits, and how the store is then asked.

    Attributes:
        name: What it is called in the results.
        files: `ledger` or `tables`: the files that are edited.
        question: How the store is asked.
        detection_point: `read` if the question is what an agent does anyway, `audit` if somebody
            has to ask it.
        rehashes: Every digest after the edit is computed anew, so that the ledger is well formed.
        drops_projections: The tables are deleted, and with them how far they had come.
        keeps: What the operator keeps elsewhere after each genuine write.
    """

    name: str
    files: str
    question: Question
    detection_point: str
    rehashes: bool = False
    drops_projections: bool = False
    keeps: Kept | None = None


SCENES: Final = (
    Scene("ledger: search", "ledger", searched, "read"),
    Scene("ledger: health", "ledger", examined, "audit"),
    Scene("ledger: verify", "ledger", verified(), "audit"),
    Scene("ledger, no tables: verify", "ledger", verified(), "audit", drops_projections=True),
    Scene(
        "new hashes, no tables: verify",
        "ledger",
        verified(),
        "audit",
        rehashes=True,
        drops_projections=True,
    ),
    Scene(
        "new hashes, no tables: verify --head",
        "ledger",
        verified_against(HEAD),
        "audit",
        rehashes=True,
        drops_projections=True,
        keeps=HEAD,
    ),
    Scene("tables: search", "tables", searched, "read"),
    Scene("tables: verify", "tables", verified(), "audit"),
    Scene("tables: verify --digest", "tables", verified("--digest"), "audit"),
)
"""From the weakest attacker and question to the strongest, of each kind of file."""


def at_rest(scene: Scene, host: CommandHost) -> "StoreUnderEdit":
    """Return the adapter of a scene."""
    return (LedgerUnderEdit if scene.files == "ledger" else TablesUnderEdit)(scene, host)


class StoreUnderEdit(MemoryAdapter):
    """A store whose files are edited behind its back. Each question opens it anew."""

    supports_replay = True
    supports_metadata = True
    supports_snapshot = True

    def __init__(self, scene: Scene, host: CommandHost) -> None:
        self.name = scene.name
        self.detection_point = scene.detection_point
        self.scene = scene
        self._host = host

    # ------------------------------------------------------------------ the tool's own interface

    def setup(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="mnemolog-agmi-", dir=MEMORY_DISK))
        self.home = self._folder / "home"
        self._kept = self._folder / "kept"

    def teardown(self) -> None:
        shutil.rmtree(self._folder)

    def seed(self, n: int) -> None:
        self._write(MINE, [f"the heron stood at pond {i}" for i in range(n)])

    def seed_other(self, n: int) -> None:
        self._write(OTHERS, [f"the kestrel hung over field {i}" for i in range(n)])

    def append_genuine(self) -> None:
        self._write(MINE, ["the heron came back late"])

    def _write(self, workspace: str, texts: list[str]) -> None:
        for number, text in enumerate(texts):
            actor = ACTORS[number % len(ACTORS)]
            with open_store(self.home, workspace=workspace, actor=actor) as memory:
                memory.add(AddArgs(content=text, layer="semantic"))
        if self.scene.keeps is not None:
            self.scene.keeps.note(self._run, self._kept)

    def _run(self, *arguments: str) -> Finished:
        return self._host.run(self.home, *arguments)

    def reload(self) -> None:
        """Do nothing: whoever asks is another process or another session."""

    def verify(self) -> bool:
        self.verify_detail = self.scene.question(Asked(self.home, self._run, self._kept))
        return self.verify_detail is None

    # ------------------------------------------------------------------ copies of all its files

    def snapshot_store(self) -> object:
        return self._copy_store(self.home)

    def restore_store(self, token: object) -> None:
        self._restore_store(str(token), self.home)
        shutil.rmtree(Path(str(token)).parent)
        self._edited()

    def _edited(self) -> None:
        if self.scene.drops_projections:
            shutil.rmtree(self.home / "projections", ignore_errors=True)


class LedgerUnderEdit(StoreUnderEdit):
    """Edits the live segment, a text file of one record a line."""

    _CHAINED: Final = ("seq", "g", "b", "n", "sp", "back", "pc", "prev")
    """Header fields that follow from where a record stands and what it says."""

    def read_all_raw(self) -> list[Record]:
        return self._memories(MINE)

    def read_other_raw(self) -> list[Record]:
        return self._memories(OTHERS)

    def write_raw(self, record: Record) -> None:
        _, lines = self._lines()
        places = self._places(lines, MINE)
        if record.seq < len(places):
            lines[places[record.seq]] = self._line(record.fields, lines[places[record.seq]])
        else:
            lines.append(self._line(record.fields, lines[-1]))
        self._put(lines)

    def delete_raw(self, seq: int) -> None:
        _, lines = self._lines()
        del lines[self._places(lines, MINE)[seq]]
        self._put(lines)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        victim = self.read_all_raw()[victim_seq]
        victim.fields["p"] = donor.fields["p"]
        self.write_raw(victim)

    def read_meta(self, seq: int) -> Fields:
        header = self.read_all_raw()[seq].fields["h"]
        return {"actor": header["act"], "time": header["t"]}

    def write_meta(self, seq: int, meta: Fields) -> None:
        """Change who is said to have written a record, to another who has."""
        record = self.read_all_raw()[seq]
        header = record.fields["h"]
        actors = [each.fields["h"]["act"] for each in self.read_all_raw()]
        if meta.get("agmi_meta_tampered"):
            header["act"] = next(actor for actor in actors if actor != meta["actor"])
        self.write_raw(record)

    def mutate_payload(self, record: Record) -> Record:
        payload = json.loads(record.fields["p"])
        payload["memory"]["content"] = payload["memory"]["content"].replace("heron", "bittern")
        record.fields["p"] = _json(payload)
        return record

    def forge_record(self, template: Record) -> Record:
        """Return a record that repeats the last one under an id of its own, with other words."""
        fields = json.loads(json.dumps(template.fields))
        fields["h"]["sub"] = fields["h"]["sub"][::-1]
        return self.mutate_payload(Record(seq=template.seq + 1, fields=fields))

    def identity_of(self, record: Record) -> str:
        return str(record.fields["h"]["sub"])

    def payload_of(self, record: Record) -> str:
        return str(record.fields["p"])

    def owner_of(self, record: Record) -> str | None:
        return str(record.fields["h"]["ws"])

    # ------------------------------------------------------------------ the file

    @property
    def _segment(self) -> Path:
        (segment,) = (self.home / "ledger" / "log").iterdir()
        return segment

    def _lines(self) -> tuple[bytes, list[Fields]]:
        """Return the segment's first line, and its records: header, raw payload, digest."""
        head, *lines = self._segment.read_bytes().splitlines(keepends=True)
        records = []
        for line in lines:
            raw_header, _, rest = line.decode()[5:].partition('},"p":')
            payload, _, digest = rest.rpartition(',"d":"')
            records.append({"h": json.loads(raw_header + "}"), "p": payload, "d": digest[:64]})
        return head, records

    def _places(self, lines: list[Fields], workspace: str) -> list[int]:
        """Return where the memories of a workspace stand."""
        (minted,) = [
            line["h"]["ws"]
            for line in lines
            if line["h"]["type"] == "workspace_created"
            and json.loads(line["p"])["name"] == workspace
        ]
        return [
            place
            for place, line in enumerate(lines)
            if (line["h"]["type"], line["h"]["ws"]) == ("memory_added", minted)
        ]

    def _memories(self, workspace: str) -> list[Record]:
        _, lines = self._lines()
        return [
            Record(seq=seq, fields=self._shown(lines[place]))
            for seq, place in enumerate(self._places(lines, workspace))
        ]

    def _shown(self, line: Fields) -> Fields:
        """Return what an edit decides about: not what is computed anew after it."""
        if not self.scene.rehashes:
            return line
        header = {name: value for name, value in line["h"].items() if name not in self._CHAINED}
        return {"h": header, "p": line["p"]}

    def _line(self, fields: Fields, before: Fields) -> Fields:
        """Return a record with these fields in the place of another."""
        if not self.scene.rehashes:
            return fields
        kept = {name: value for name, value in before["h"].items() if name in self._CHAINED}
        return {"h": {**kept, **fields["h"]}, "p": fields["p"], "d": before["d"]}

    def _put(self, lines: list[Fields]) -> None:
        head, _ = self._lines()
        if self.scene.rehashes:
            previous, time = json.loads(head)["segment"]["prev"], ""
            for seq, line in enumerate(lines, start=1):
                line["h"] = _chained(line["h"], line["p"], seq, previous, time)
                previous = line["d"] = sha256(b"\0" + _json(line["h"]).encode()).hexdigest()
                time = line["h"]["t"]
        self._segment.write_bytes(
            head
            + b"".join(
                f'{{"h":{_json(line["h"])},"p":{line["p"]},"d":"{line["d"]}"}}\n'.encode()
                for line in lines
            )
        )
        self._edited()


_ORDER: Final = (
    "seq", "g", "b", "n", "t", "type", "v", "ws", "sub", "sp", "act", "ses", "cause", "undo", "ik",
    "back", "pc", "prev",
)  # fmt: skip
"""Header fields as writers write them."""


def _chained(header: Fields, payload: str, seq: int, previous: str, time: str) -> Fields:
    """Return a header as a writer would have written it at this place of the chain."""
    made = {
        **header,
        "seq": seq,
        "pc": sha256(b"\2" + payload.encode()).hexdigest(),
        "prev": previous,
        "back": header["t"] < time,
    }
    return {name: made[name] for name in _ORDER if made.get(name)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class TablesUnderEdit(StoreUnderEdit):
    """Edits the table of memories that searches answer from."""

    def read_all_raw(self) -> list[Record]:
        return self._rows(MINE)

    def read_other_raw(self) -> list[Record]:
        return self._rows(OTHERS)

    def write_raw(self, record: Record) -> None:
        rows = self.read_all_raw()
        with self._database() as database:
            if record.seq < len(rows):
                place = {name: rows[record.seq].fields[name] for name in ("rid", "id")}
                self._insert(database, {**record.fields, **place})
            else:
                (last,) = database.execute("SELECT max(rid) FROM memories").fetchone()
                self._insert(database, {**record.fields, "rid": last + 1})

    def delete_raw(self, seq: int) -> None:
        rid = self.read_all_raw()[seq].fields["rid"]
        with self._database() as database:
            database.execute("DELETE FROM memories WHERE rid = ?", (rid,))

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        victim = self.read_all_raw()[victim_seq]
        self.write_raw(
            Record(seq=victim_seq, fields={**victim.fields, "content": donor.fields["content"]})
        )

    def read_meta(self, seq: int) -> Fields:
        fields = self.read_all_raw()[seq].fields
        return {"agent": fields["agent"], "created_us": fields["created_us"]}

    def write_meta(self, seq: int, meta: Fields) -> None:
        """Change who is said to have written a row, to another who has."""
        rows = self.read_all_raw()
        if meta.get("agmi_meta_tampered"):
            others = [
                each.fields["agent"] for each in rows if each.fields["agent"] != meta["agent"]
            ]
            self.write_raw(Record(seq=seq, fields={**rows[seq].fields, "agent": others[0]}))

    def mutate_payload(self, record: Record) -> Record:
        record.fields["content"] = record.fields["content"].replace("heron", "bittern")
        return record

    def forge_record(self, template: Record) -> Record:
        fields = {**template.fields, "id": template.fields["id"][::-1]}
        return self.mutate_payload(Record(seq=template.seq + 1, fields=fields))

    def identity_of(self, record: Record) -> str:
        return str(record.fields["id"])

    def payload_of(self, record: Record) -> str:
        return str(record.fields["content"])

    def owner_of(self, record: Record) -> str | None:
        return str(record.fields["workspace"])

    # ------------------------------------------------------------------ the file

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        generation = (self.home / "projections" / "CURRENT").read_text().strip()
        path = self.home / "projections" / generation / "memory.db"
        with closing(sqlite3.connect(path)) as database:
            database.row_factory = sqlite3.Row
            yield database
            database.commit()

    def _rows(self, workspace: str) -> list[Record]:
        with self._database() as database:
            rows = database.execute(
                "SELECT m.* FROM memories m JOIN workspaces w ON w.rid = m.workspace"
                " WHERE w.name = ? ORDER BY m.rid",
                (workspace,),
            )
            return [Record(seq=seq, fields=dict(row)) for seq, row in enumerate(rows)]

    @staticmethod
    def _insert(database: sqlite3.Connection, row: Fields) -> None:
        names = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        database.execute(f"INSERT OR REPLACE INTO memories({names}) VALUES({values})", row)


# ---------------------------------------------------------------------------- the front door


class StoreThroughItsDoor(SemanticMemoryAdapter):
    """A store that is written and searched as an agent does; a user is a workspace.

    The suite's label and signature are passed on as `source` and `meta`. Fields that it filters by
    become tags, the only free words that mnemolog filters by.
    """

    name = "mnemolog, front door"

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._open: dict[str, Any] = {}

    def reset(self) -> None:
        self.close()
        self._folder = Path(tempfile.mkdtemp(prefix="mnemolog-agmi-", dir=MEMORY_DISK))

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def add_memory(self, item: MemoryItem) -> None:
        self._store(item.user_id).add(
            AddArgs(
                content=item.text,
                layer="semantic",
                source=item.source,
                tags=_tags(item.metadata),
                meta={} if item.signature is None else {"signature": item.signature},
            )
        )

    def retrieve(self, query: str, user_id: str, k: int = 5) -> list[Retrieved]:
        return self.retrieve_where(query, user_id, {}, k)

    def retrieve_where(
        self, query: str, user_id: str, where: Fields, k: int = 5
    ) -> list[Retrieved]:
        asked = SearchArgs(query=query, limit=k, tags=_tags(where))
        return [
            Retrieved(text=found.content, user_id=user_id, score=found.score)
            for found in self._store(user_id).search(asked).memories
        ]

    def _store(self, user: str) -> Any:
        assert self._folder is not None
        if user not in self._open:
            self._open[user] = open_store(self._folder / "home", workspace=user, actor="agent")
        return self._open[user]

    def measured_on(self) -> str:
        return f"mnemolog {version('mnemolog')}, search by words"


def _tags(fields: Fields) -> tuple[str, ...]:
    return tuple(f"{name}:{value}" for name, value in fields.items())

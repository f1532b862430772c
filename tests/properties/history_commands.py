"""What the commands of a history are made of: texts, names, dates and filters."""

from typing import Final
from unicodedata import category

from hypothesis import strategies as st

WORKSPACES: Final = ("default", "other")
KEYS: Final = ("k1", "k2", "ключ")
LAYERS: Final = ("episodic", "semantic", "procedural", "resource")
ENTITIES: Final = ("Ana", "Анна", "%_", "Матрёна 🚀")
FILES: Final = ("a", "notes/a.md", "б.txt")
SCOPES: Final = ("global", "", "f_rn")
TAGS: Final = ("port", "report", "50%", "red_box", "🚀", "a,b", "\x00")
WORDS: Final = (
    "boiler",
    "Pump",
    "насос",
    "Матрёна",
    "服务器",
    "🚀",
    "👩‍👩‍👧",
    "e\u0301",
    "\x00",
    "\x07",
    "\u2028",
    "a\tb",
    '"',
    "{",
    "\\",
    "ﬁ",
    "İ",
    "ß",
    "\U0010ffff",
    "line\nbreak",
    "\r",
    "İstanbul",
    "ا",
    "ไทย",
    "70/140",
)
DATES: Final = (
    "2024-05-01",
    "2026-01-31T10:00",
    "2026-01-31T10:00:00+02:00",
    "0001-01-01",
    "9999-12-31",
    "2025-12-31T23:59:59.999999Z",
)

INVISIBLE = {"Cc", "Cf", "Zl", "Zp", "Zs"}
contents = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
).filter(lambda text: any(category(each) not in INVISIBLE for each in text))
blanks = st.sampled_from(["", " ", "\n\t ", "\u3000", "\x1f", "\x00", "\u200b\ufeff"])
names = st.one_of(st.none(), st.sampled_from(["", "Ana", "Матрёна 🚀", "\x00", "%_"]))
shares = st.sampled_from([0.0, 0.1, 0.5, 0.8, 1.0, 1 / 3])
tags = st.lists(st.sampled_from(TAGS), max_size=3)
metas = st.dictionaries(
    st.sampled_from(["a", "b", "ключ", ""]),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(-1e9, 1e9)
        | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
        ),
        max_leaves=3,
    ),
    max_size=2,
)
workspaces = st.sampled_from(WORKSPACES)
extras = st.fixed_dictionaries(
    {},
    optional={
        "title": names,
        "entity_name": names.filter(lambda name: name != "") | st.sampled_from(ENTITIES),
        "entity_type": st.sampled_from(["person", "rule"]),
        "scope": st.sampled_from(SCOPES),
        "tags": tags,
        "meta": metas,
        "confidence": shares,
        "importance": shares,
        "event_at": st.sampled_from(DATES),
        "valid_from": st.sampled_from(DATES[:1]),
        "valid_until": st.sampled_from(DATES[4:5]),
        "ttl_days": st.sampled_from([0.001, 1, 400]),
        "source_file": names.filter(lambda name: name != "") | st.sampled_from(FILES),
    },
)
from_files = st.fixed_dictionaries(
    {"source_file": st.sampled_from(FILES[:2])},
    optional={
        "event_at": st.sampled_from(DATES),
        "scope": st.sampled_from(SCOPES[:2]),
        "valid_until": st.sampled_from(["2024-01-01", "2026-06-01"]),
        "ttl_days": st.just(1),
    },
)
items = st.one_of(
    st.fixed_dictionaries(
        {"content": contents, "layer": st.sampled_from(LAYERS)},
        optional={
            "source_file": st.sampled_from(FILES[:2]),
            "event_at": st.sampled_from(DATES),
            "entity_name": st.sampled_from(ENTITIES),
            "idempotency_key": st.sampled_from(KEYS),
        },
    ),
    st.sampled_from(
        [
            None,
            5,
            [],
            {},
            "no object",
            {"content": "no layer"},
            {"content": "x", "layer": "dreams"},
            {"content": "\u200b", "layer": "semantic"},
            {"content": "x", "layer": "semantic", "event_at": "2026-02-30"},
            {"content": "x", "layer": "semantic", "colour": "red"},
            {"content": "x", "layer": "semantic", "confidence": 7},
        ]
    ),
)
deletions = st.one_of(
    st.just({"everything": True}),
    st.fixed_dictionaries(
        {},
        optional={
            "layers": st.lists(st.sampled_from(LAYERS), min_size=1, max_size=3),
            "entity_name": st.sampled_from(ENTITIES),
            "scope": st.sampled_from(SCOPES),
            "tags": st.lists(st.sampled_from(TAGS), min_size=1, max_size=2),
            "source_file": st.sampled_from(FILES),
        },
    ).filter(bool),
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "content": contents,
        "title": names.filter(lambda name: name is not None),
        "tags": tags,
        "meta": metas,
        "confidence": shares,
        "importance": shares,
    },
)
keys = st.one_of(st.none(), st.none(), st.sampled_from(KEYS))

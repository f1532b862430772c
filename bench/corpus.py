"""A made-up corpus, the same everywhere: memories in English and Russian, and queries on them.

Memory `i` depends on the seed and `i` alone, so a store of any size can be filled, and asked about
what it holds, without keeping the texts. Words are built from syllables and drawn with Zipf's law:
few words make most of a text, and most words are rare, as in prose.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import accumulate
from typing import Any

SEED = 20_260_301
WORDS_PER_LANGUAGE = 40_000
FUNCTION_WORDS = 60
"""The most frequent words; a query never asks for them."""

ENTITIES = 2_000
SPAN_DAYS = 730
DATE_WINDOW_DAYS = 90
FIRST_DAY = datetime(2024, 9, 1, tzinfo=UTC)
RESULTS_WANTED = 10

QUERY_KINDS = ("and2", "or4", "layer", "date", "exact")
"""Two words of one memory; two words each of two; two words in a layer; in a window; a phrase."""

# Syllables: onsets, vowels, codas; and endings of words.
_ENGLISH = (
    ("b", "d", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br", "dr", "pl", "st"),
    ("a", "e", "i", "o", "ea", "ou"),
    ("", "", "", "n", "r", "l", "m"),
    ("", "", "", "s", "ed", "ing", "ly", "er"),
)
_RUSSIAN = (
    ("б", "в", "г", "д", "ж", "к", "л", "м", "н", "п", "р", "с", "т", "ф", "ч", "др", "пл", "ст"),
    ("а", "е", "и", "о", "ы", "я"),
    ("", "", "", "н", "р", "л", "м"),
    ("", "", "а", "ы", "ов", "ами", "ого", "ение"),
)
_LAYERS = ("episodic", "semantic", "procedural", "resource")
_LAYER_WEIGHTS = (4, 4, 1, 1)
_ENTITY_TYPES = ("user", "project", "person", "concept", "file", "rule", "tool")

Memory = dict[str, Any]
Query = dict[str, Any]


class _Words:
    """The vocabulary of one language, most frequent word first."""

    def __init__(
        self, parts: tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]], seed: str
    ) -> None:
        onsets, vowels, codas, endings = parts
        rng = random.Random(seed)
        words: dict[str, None] = {}
        while len(words) < WORDS_PER_LANGUAGE:
            # Frequent words are short.
            syllables = 2 if len(words) > FUNCTION_WORDS else 1
            stem = "".join(
                rng.choice(onsets) + rng.choice(vowels) + rng.choice(codas)
                for _ in range(syllables)
            )
            ending = "" if len(words) < FUNCTION_WORDS else rng.choice(endings)
            words[stem + ending] = None
        self.words = list(words)
        self._cumulative = list(accumulate(1 / (rank + 2.7) for rank in range(WORDS_PER_LANGUAGE)))

    def draw(self, rng: random.Random) -> str:
        return self.words[bisect(self._cumulative, rng.random() * self._cumulative[-1])]


class Corpus:
    """Memories and queries by number."""

    def __init__(self, seed: int = SEED) -> None:
        """Prepare the vocabularies."""
        self._seed = seed

    @cached_property
    def _languages(self) -> tuple[_Words, _Words]:
        return _Words(_ENGLISH, f"{self._seed} en"), _Words(_RUSSIAN, f"{self._seed} ru")

    @cached_property
    def _frequent(self) -> frozenset[str]:
        return frozenset(
            word for language in self._languages for word in language.words[:FUNCTION_WORDS]
        )

    def memory(self, number: int) -> Memory:
        """Return one memory: the fields of memory_add, None where it has none."""
        rng = random.Random(f"{self._seed} memory {number}")
        has_entity = rng.random() < 0.3
        dated = rng.random() < 0.7
        return {
            "content": self._text(rng, max(12, min(180, round(rng.lognormvariate(3.97, 0.42))))),
            "layer": rng.choices(_LAYERS, _LAYER_WEIGHTS)[0],
            "title": self._text(rng, 4).rstrip(".") if rng.random() < 0.4 else None,
            "entity_type": rng.choice(_ENTITY_TYPES) if has_entity else None,
            "entity_name": f"entity-{int(ENTITIES * rng.random() ** 3)}" if has_entity else None,
            "event_at": _day(rng.randrange(SPAN_DAYS)) if dated else None,
            "confidence": round(rng.uniform(0.5, 1.0), 2),
            "importance": round(rng.random(), 2),
            "scope": f"project-{rng.randrange(20)}",
            "source": "bench",
            "meta": {"number": number},
        }

    def memories(self, start: int, count: int) -> Iterator[Memory]:
        """Yield `count` memories from number `start` on."""
        for number in range(start, start + count):
            yield self.memory(number)

    def queries(self, kind: str, count: int, size: int) -> Iterator[Query]:
        """Yield queries of one of `QUERY_KINDS` on a store of the first `size` memories."""
        rng = random.Random(f"{self._seed} {kind} {size}")
        for _ in range(count):
            yield self._query(rng, kind, size)

    def _query(self, rng: random.Random, kind: str, size: int) -> Query:
        query: Query = {"limit": RESULTS_WANTED}
        match kind:
            case "exact":
                words = self.memory(rng.randrange(size))["content"].split()
                start = rng.randrange(len(words) - 2)
                query |= {"query": " ".join(words[start : start + 3]), "mode": "exact"}
            case "or4":
                words = self._content_words(rng, size) + self._content_words(rng, size)
                query["query"] = " ".join(words)
            case _:
                query["query"] = " ".join(self._content_words(rng, size))
                if kind == "layer":
                    query["layers"] = ["semantic"]
                elif kind == "date":
                    first = rng.randrange(SPAN_DAYS - DATE_WINDOW_DAYS)
                    query |= {"date_from": _day(first), "date_to": _day(first + DATE_WINDOW_DAYS)}
        return query

    def _content_words(self, rng: random.Random, size: int) -> list[str]:
        """Return two words of one memory that say something."""
        while True:
            words = [
                word
                for word in self.memory(rng.randrange(size))["content"].lower().split()
                if word.isalpha() and word not in self._frequent and len(word) > 3
            ]
            if len(set(words)) >= 2:
                return rng.sample(sorted(set(words)), 2)

    def _text(self, rng: random.Random, length: int) -> str:
        english, russian = self._languages
        kind = rng.random()
        words: list[str] = []
        while len(words) < length:
            sentence_end = min(length, len(words) + rng.randint(6, 14))
            # Half of the texts are English, a third is Russian, the others change by the sentence.
            language = english if kind < 1 / 2 or (kind > 5 / 6 and rng.random() < 0.5) else russian
            first = len(words)
            while len(words) < sentence_end:
                words.append(language.draw(rng))
                if rng.random() < 0.02:
                    words[-1] += f"-{rng.randrange(1000)}"
            words[first] = words[first].capitalize()
            words[-1] += "."
        return " ".join(words)


def _day(number: int) -> str:
    return (FIRST_DAY + timedelta(days=number)).date().isoformat()

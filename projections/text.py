"""One analysis of text, used alike for the index and for queries.

What a text is made of, in this order:

1. It is split at blanks, controls and common punctuation (ASCII, Latin and CJK) into chunks.
2. A chunk is folded: invisible characters (joiners, variation selectors, soft hyphens, marks of
   direction, keycap frames) go, then Unicode NFKC, case folding, and `ё` becomes `е`. Other
   diacritics count: `café` is not `cafe`.
3. A folded chunk is split into words of one script each, digits joining either side, combining
   marks staying with their base: `周二上线build-77后` holds `build` and `77`, `VPNом` holds `vpn`
   and `ом`.
4. A word becomes terms:
   - a word of a script with a language (`Languages`) its Snowball stem;
   - a run of a script written without spaces (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) its
     overlapping pairs of characters, then its last character alone, so that every character
     begins a term and a one-character query can be asked as a prefix;
   - a symbol or emoji (category So, skin tones) itself, a flag its two letters together; frames
     drawn with box and block characters are no terms;
   - a number, and a word of any other script, itself.
   A word longer than `WORD_CHARS_MAX` is cut into unstemmed pieces of that length: the whole word
   is still found, a part of it only by an exact search.

A term holds no ASCII but letters and digits, so terms joined by blanks are what FTS5's `ascii`
tokenizer takes apart again, and a quoted term is never query syntax. Work is linear in the text.

The classes of characters are those of the running Python's Unicode version.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from itertools import pairwise
from threading import Lock

import snowballstemmer
from msgspec import Struct

from projections.characters import KINDS, LETTER_OF_SCRIPT, NUMBER, OTHER, UNSPACED

ANALYSIS_VERSION = 1
"""Version of the analysis: another one means another index, so a rebuild."""

WORD_CHARS_MAX = 64
"""Longest term of a word, in characters; longer words are cut."""

QUERY_TERMS_MAX = 64
"""Most distinct terms, and most words of one phrase, that a query keeps."""

QUERY_PHRASES_MAX = 8
"""Most quoted phrases that a query keeps."""

_MEMO_ENTRIES_MAX = 500_000
_MEMO_CHUNK_CHARS_MAX = 32
_MARK_RUN_MAX = 30  # the limit of Unicode's stream-safe text format

# Splitting here is only for speed and only at characters that would separate words in any case.
_CHUNK = re.compile(
    "[^\\x00-/:-@\\[-`{-\xa1\xa7\xab\xb6\xb7\xbb\xbf\u2000-\u200b\u2010-\u2029\u202f-\u205f"
    "\u3000-\u3003\u3008-\u3011\u3014-\u301f\u30fb"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+"
)

# Unicode's default ignorable characters without the zero width space, which separates words, and
# with the keycap frame.
_IGNORED = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f"
    "\u20e3\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_LONG_MARK_RUN = re.compile(rf"[^\w\s\x00-\x7f]{{{_MARK_RUN_MAX + 1},}}")
_IE_WITH_MARKS = re.compile("е[^\\w\\s\\x00-\\x7f]+")

_PAIR, _LAST = "pq"
_WORD = re.compile(
    "n[nm]*(?:{0})?|{0}|u[um]*|ff?|s".format(
        "|".join(f"{kind}[{kind}nm]*" for kind in [*LETTER_OF_SCRIPT.values(), OTHER])
    )
)

_PLAIN_WORD = re.compile("([A-Za-z]+)|([А-Яа-яЁё]+)")
_PLAIN_KINDS = ("", LETTER_OF_SCRIPT["latin"], LETTER_OF_SCRIPT["cyrillic"])

# Text in which a chunk is a run of letters and digits, and folding keeps every character's place.
_PLAIN_TEXT = re.compile("[\\x00-\\x7fА-Яа-яЁё«»\u2013\u2014\u2018-\u201e]*")

_HEAD_KEEPING_ALGORITHMS = frozenset({"", "english", "russian"})
"""Those whose stem begins as the word does, but for its last `_STEM_CHANGES_MAX` characters."""

_STEM_CHANGES_MAX = 2

_QUOTED = re.compile(
    '"([^"]*)"|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»|»([^«»]*)«|‹([^‹›]*)›'
    "|「([^「」]*)」|『([^『』]*)』|＂([^＂]*)＂"
)

_ENGLISH_STOP_WORDS = (
    "a about am an and any are as at be been being but by can could did do does for from had has"
    " have he her him his how i if in into is it its me my no nor not of on or our s she should so"
    " such t than that the their them then there these they this those to us was we were what when"
    " where which who whom why will with would you your"
)
_RUSSIAN_STOP_WORDS = (
    "а без бы был была были было быть в вам вас во вот все вы где для до его ее если есть еще же за"
    " здесь и из или им их к как ко когда который кто ли мне мы мой на над нам нас не него нее нет"
    " ни них но о об он она они оно от по под при про с свой со так такой там то тоже только тот ты"
    " у уже чего чем что чтобы эта эти это этот я"
)
_STOP_WORDS = {
    "english": frozenset(_ENGLISH_STOP_WORDS.split()),
    "russian": frozenset(_RUSSIAN_STOP_WORDS.split()),
}


class Token(Struct, frozen=True, gc=False):
    """A term and the half-open span of the original text, in characters, that it stands for."""

    term: str
    start: int
    end: int


class Term(Struct, frozen=True):
    """A term to look for; with `is_prefix`, any term that begins with it."""

    text: str
    is_prefix: bool = False

    @property
    def match(self) -> str:
        """The term as an FTS5 expression."""
        return f'"{self.text}" *' if self.is_prefix else f'"{self.text}"'

    def matches(self, term: str) -> bool:
        """Tell whether a term of a text is one that this looks for."""
        return term.startswith(self.text) if self.is_prefix else term == self.text


class Phrase(Struct, frozen=True):
    """Terms that must follow one another; with `is_prefix`, the last one may go on."""

    terms: tuple[str, ...]
    is_prefix: bool = False

    @property
    def match(self) -> str:
        """The phrase as an FTS5 expression."""
        joined = f'"{" ".join(self.terms)}"'
        return f"{joined} *" if self.is_prefix else joined


class Query(Struct, frozen=True):
    """What a user's text asks for.

    Attributes:
        terms: All distinct terms in their order, those within phrases too. Stop words are left out
            unless there is nothing else.
        phrases: What stood within balanced quotes, stop words kept.
        dropped: How many distinct terms and phrases were left out because of the limits.
    """

    terms: tuple[Term, ...]
    phrases: tuple[Phrase, ...] = ()
    dropped: int = 0

    def __bool__(self) -> bool:
        """Tell whether there is anything to look for."""
        return bool(self.terms)

    def match_all(self) -> str:
        """Return the FTS5 expression for all phrases and terms; empty if there are none."""
        phrases = [phrase.match for phrase in self.phrases]
        return " AND ".join(dict.fromkeys([*phrases, *(term.match for term in self.terms)]))


class Languages(Struct, frozen=True, kw_only=True):
    """The Snowball algorithm that stems the words of each script; empty leaves them unstemmed.

    Raises:
        ValueError: If an algorithm is not known.
    """

    latin: str = "english"
    cyrillic: str = "russian"
    greek: str = ""
    armenian: str = ""
    arabic: str = ""
    devanagari: str = ""
    tamil: str = ""

    def __post_init__(self) -> None:
        """Refuse unknown algorithms."""
        known = snowballstemmer.algorithms()
        for script, algorithm in self.by_script().items():
            if algorithm and algorithm not in known:
                raise ValueError(f"{script}: no stemmer {algorithm!r}; known are {sorted(known)}")

    def by_script(self) -> dict[str, str]:
        """Return the algorithm of each script."""
        return {script: getattr(self, script) for script in self.__struct_fields__}


ENGLISH_AND_RUSSIAN = Languages()
"""The default languages."""


def fold(text: str) -> str:
    """Return what a text is compared by: no invisible characters, NFKC, no case, `ё` as `е`.

    Folding twice is folding once. Of more than 30 combining marks in a row only 30 count.
    """
    if text.isascii():
        return text.lower()
    if _PLAIN_TEXT.fullmatch(text):
        return text.lower().replace("ё", "е")
    # Half-width sound marks are letters that turn into combining marks.
    text = _IGNORED.sub("", text).replace("\uff9e", "\u3099").replace("\uff9f", "\u309a")
    # Normalization sorts runs of marks in quadratic time.
    text = _LONG_MARK_RUN.sub(_cap_marks, text)
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFKC", text).replace("ё", "е")
    if "\u0308" in text:
        text = _IE_WITH_MARKS.sub(_bare_ie, text)
    return text


def terms(text: str, languages: Languages = ENGLISH_AND_RUSSIAN) -> str:
    """Return the terms of a text, joined by blanks: the input of an FTS5 index with `ascii`."""
    return " ".join(filter(None, map(_memo(languages).__getitem__, _CHUNK.findall(text))))


def analyze(text: str, languages: Languages = ENGLISH_AND_RUSSIAN) -> list[Token]:
    """Return the terms of a text with the places in the original text that they stand for."""
    memo = _memo(languages)
    return [token for found in _CHUNK.finditer(text) for token in memo.tokens(found)]


def occurrences(
    text: str,
    wanted: Collection[Term],
    *,
    limit: int,
    languages: Languages = ENGLISH_AND_RUSSIAN,
) -> list[Token]:
    """Return at most about `limit` tokens, the first ones, that any of the wanted terms matches.

    Much faster than `analyze` where few tokens match.
    """
    memo = _memo(languages)
    whole = {term.text for term in wanted if not term.is_prefix}
    prefixes = tuple(term.text for term in wanted if term.is_prefix)
    hits: list[Token] = []
    if not whole and not prefixes:
        return hits
    for found in _chunks_worth_a_look(text, wanted, memo):
        joined = memo[found[0]]
        if joined in whole and _PLAIN_WORD.fullmatch(found[0]):
            hits.append(Token(joined, found.start(), found.end()))
        elif joined in whole or " " in joined or joined.startswith(prefixes):
            hits.extend(
                token
                for token in memo.tokens(found)
                if token.term in whole or token.term.startswith(prefixes)
            )
        if len(hits) >= limit:
            break
    return hits


def _chunks_worth_a_look(
    text: str, wanted: Collection[Term], memo: "_Memo"
) -> Iterator[re.Match[str]]:
    """Yield, in order, the chunks that may hold a wanted term: in plain prose not many."""
    if not (memo.keeps_heads and (text.isascii() or _PLAIN_TEXT.fullmatch(text))):
        yield from _CHUNK.finditer(text)
        return
    folded = text.lower().replace("ё", "е")
    chunks: dict[int, re.Match[str]] = {}
    for term in wanted:
        head = term.text[: max(1, len(term.text) - _STEM_CHANGES_MAX)]
        at = folded.find(head)
        while at >= 0:
            if _begins_word(folded, at):
                start = _start_of_chunk(folded, at)
                found = _CHUNK.match(text, start)
                assert found is not None, "a word begins here"
                chunks[start] = found
                at = found.end() - 1
            at = folded.find(head, at + 1)
    yield from (chunks[start] for start in sorted(chunks))


def _begins_word(folded: str, at: int) -> bool:
    """Tell whether a word may begin here, in plain text: not within letters of one alphabet."""
    before = folded[at - 1 : at]
    return not before.isalpha() or before.isascii() != folded[at].isascii()


def _start_of_chunk(folded: str, at: int) -> int:
    while at and folded[at - 1].isalnum():
        at -= 1
    return at


def parse_query(text: str, languages: Languages = ENGLISH_AND_RUSSIAN) -> Query:
    """Read a user's text as a query. Nothing in it is syntax but balanced double quotes.

    A text of only blanks, punctuation and invisible characters gives a query without terms.
    """
    memo = _memo(languages)
    kept: dict[Term, None] = {}
    stopped: dict[Term, None] = {}
    for found in _CHUNK.finditer(text):
        if (word := memo.plain_word(found[0])) is not None:
            (stopped if word[1] else kept)[Term(word[0])] = None
            continue
        for piece in _query_pieces(fold(found[0])):
            term = Term(memo.term(piece), is_prefix=piece.kind == _LAST)
            (stopped if memo.is_stop_word(piece) else kept)[term] = None
    everything = tuple(kept or stopped)
    phrases = tuple(dict.fromkeys(_phrases(text, memo)))
    dropped = max(0, len(everything) - QUERY_TERMS_MAX) + max(0, len(phrases) - QUERY_PHRASES_MAX)
    return Query(everything[:QUERY_TERMS_MAX], phrases[:QUERY_PHRASES_MAX], dropped)


class _Piece(Struct, frozen=True, gc=False):
    """What one term is made of: its kind and its place in the folded chunk."""

    kind: str
    text: str
    start: int
    end: int


def _runs(folded: str) -> Iterator[tuple[str, int, int]]:
    """Yield the kind, start and end of each word and each unspaced run of a folded chunk."""
    for found in _WORD.finditer(folded.translate(KINDS)):
        yield found[0].strip("nm")[:1] or NUMBER, found.start(), found.end()


def _pieces(folded: str) -> Iterator[_Piece]:
    for kind, start, end in _runs(folded):
        if kind == UNSPACED:
            for at in range(start, end - 1):
                yield _Piece(_PAIR, folded[at : at + 2], at, at + 2)
            yield _Piece(_LAST, folded[end - 1 : end], end - 1, end)
        elif end - start > WORD_CHARS_MAX:
            for at in range(start, end, WORD_CHARS_MAX):
                stop = min(at + WORD_CHARS_MAX, end)
                yield _Piece(OTHER, folded[at:stop], at, stop)
        else:
            yield _Piece(kind, folded[start:end], start, end)


def _query_pieces(folded: str) -> Iterator[_Piece]:
    """Yield the pieces of a chunk without last characters that a pair holds: a run may go on."""
    paired_until = -1
    for piece in _pieces(folded):
        if piece.kind == _LAST and piece.end == paired_until:
            continue
        paired_until = piece.end if piece.kind == _PAIR else -1
        yield piece


def _phrases(text: str, memo: "_Memo") -> Iterator[Phrase]:
    for quoted in _QUOTED.finditer(text):
        pieces = [
            piece
            for found in _CHUNK.finditer(quoted[quoted.lastindex or 0])
            for piece in _pieces(fold(found[0]))
        ][: QUERY_TERMS_MAX + 1]
        # Only the phrase's last run may go on in the text; inner ones end where the text's do.
        goes_on = len(pieces) > 1 and pieces[-1].kind == _LAST and pieces[-2].kind == _PAIR
        if goes_on or len(pieces) > QUERY_TERMS_MAX:
            pieces.pop()
        if pieces:
            prefix = pieces[-1].kind == _LAST
            yield Phrase(tuple(memo.term(piece) for piece in pieces), is_prefix=prefix)


class _Memo(dict[str, str]):
    """The terms of each chunk met so far, joined by blanks, in one set of languages."""

    def __init__(self, languages: Languages) -> None:
        super().__init__()
        self._stem: dict[str, Callable[[str], str]] = {}
        self._stop_words: dict[str, frozenset[str]] = {}
        self.keeps_heads = _HEAD_KEEPING_ALGORITHMS.issuperset(languages.by_script().values())
        # A stemmer keeps state while it works.
        self._lock = Lock()
        for script, algorithm in languages.by_script().items():
            if algorithm:
                kind = LETTER_OF_SCRIPT[script]
                self._stem[kind] = _stemmer(algorithm)
                self._stop_words[kind] = _STOP_WORDS.get(algorithm, frozenset())

    def __missing__(self, chunk: str) -> str:
        plain = _PLAIN_WORD.fullmatch(chunk)
        folded = chunk.lower().replace("ё", "е") if plain else fold(chunk)
        if plain and len(chunk) <= WORD_CHARS_MAX:
            # Most new chunks of prose: one word, of which no more than its script has to be known.
            joined = self._stemmed(_PLAIN_KINDS[plain.lastindex or 0], folded)
        elif len(folded) > _MEMO_CHUNK_CHARS_MAX:
            joined = " ".join(self._terms_of_long(folded))
        else:
            joined = " ".join(map(self.term, _pieces(folded)))
        # Runs without spaces hardly ever come back.
        if len(chunk) <= _MEMO_CHUNK_CHARS_MAX and joined.count(" ") < 2:
            if len(self) >= _MEMO_ENTRIES_MAX:
                self.clear()
            self[chunk] = chunk if joined == chunk else joined
        return joined

    def _terms_of_long(self, folded: str) -> Iterator[str]:
        """Yield what `_pieces` gives, several times as fast for text without spaces."""
        for kind, start, end in _runs(folded):
            run = folded[start:end]
            if kind == UNSPACED:
                yield from map("".join, pairwise(run))
                yield run[-1]
            elif len(run) > WORD_CHARS_MAX:
                yield from (piece.text for piece in _pieces(run))
            else:
                yield self._stemmed(kind, run)

    def term(self, piece: _Piece) -> str:
        return self._stemmed(piece.kind, piece.text)

    def _stemmed(self, kind: str, word: str) -> str:
        stem = self._stem.get(kind)
        if stem is None:
            return word
        with self._lock:
            return stem(word)

    def is_stop_word(self, piece: _Piece) -> bool:
        return piece.text in self._stop_words.get(piece.kind, ())

    def plain_word(self, chunk: str) -> tuple[str, bool] | None:
        """Return a chunk's term and whether it is a stop word, if the chunk is one plain word."""
        plain = _PLAIN_WORD.fullmatch(chunk)
        if plain is None or len(chunk) > WORD_CHARS_MAX:
            return None
        stop_words = self._stop_words.get(_PLAIN_KINDS[plain.lastindex or 0], ())
        return self[chunk], chunk.lower().replace("ё", "е") in stop_words

    def tokens(self, found: re.Match[str]) -> Iterator[Token]:
        chunk, base = found[0], found.start()
        folded = fold(chunk)
        spans = _origins(chunk, folded)
        for piece in _pieces(folded):
            start = spans[piece.start][0]
            end = spans[piece.end - 1][1]
            yield Token(self.term(piece), base + start, base + end)


def forget_words() -> None:
    """Drop the words that were analysed lately from the memory of this process."""
    _memo.cache_clear()


@lru_cache(maxsize=16)
def _memo(languages: Languages) -> _Memo:
    return _Memo(languages)


def _stemmer(algorithm: str) -> Callable[[str], str]:
    stemmer = snowballstemmer.stemmer(algorithm)
    # The compiled stemmer's own cache costs more than a stem; the pure Python one has none.
    stemmer.maxCacheSize = 0
    stem: Callable[[str], str] = stemmer.stemWord
    return stem


def _origins(chunk: str, folded: str) -> list[tuple[int, int]]:
    """Return for each character of a folded chunk the span of the chunk that it came from."""
    if len(chunk) == len(folded) and chunk.lower().replace("ё", "е") == folded:
        return [(at, at + 1) for at in range(len(chunk))]
    spans: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(chunk) + 1):
        if end == len(chunk) or not _continues(chunk[end]):
            spans += [(start, end)] * len(fold(chunk[start:end]))
            start = end
    return spans


@lru_cache(maxsize=4096)
def _continues(char: str) -> bool:
    """Tell whether folding may merge a character into the one before it."""
    if char.isascii():
        return False
    first = unicodedata.normalize("NFKD", char)[0]
    return (
        unicodedata.category(first).startswith("M")
        or "\u1160" <= first <= "\u11ff"
        or _IGNORED.match(char) is not None
    )


def _bare_ie(run: re.Match[str]) -> str:
    letter_and_marks = run[0]
    end = 1
    while end < len(letter_and_marks) and unicodedata.category(letter_and_marks[end])[0] == "M":
        end += 1
    return letter_and_marks[:end].replace("\u0308", "") + letter_and_marks[end:]


def _cap_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.category(char).startswith("M") else 0
        if marks <= _MARK_RUN_MAX:
            kept.append(char)
    return "".join(kept)

"""What the drivers' explanations admit: an approximation must say how its clause differs, and is held to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman_api.filters import Explanation

READ = {
    r"rows without '.*' match too": "absent",
    r"the mapping's null_value makes stored nulls count as values": "nulls",
    r"analysed text: compares words, not the exact text": "words",
    r"analysed text: finds whole words in this order, anywhere in the text": "words",
    r"compares the values of all keys": "keys",
    r"letter case is compared(: this version of the server cannot ignore it)?": "case",
    r"letter case is ignored for ASCII letters only": "ascii",
    r"letter case is not compared": "folded",
    r"strings longer than (?P<limit>\d+) characters are not indexed in .*": "limit",
    r"no other row of element .* is on '.*'": "alone",
    r"empty values count as null too": "empty",
    r"integers beyond 2\^53 are compared as 64-bit floats": "floats",
    r"compares words: a text that contains them all matches, in any order": "words",
    r"compares words: finds them in any order, anywhere in the text": "words",
    r"finds texts in which any word (starts|ends) with it": "words",
    r"words that are not indexed \(stopwords\) are left out": "stopwords",
    r"white space around the text is not compared": "trimmed",
    r"\* and \? stand for any characters; they cannot be escaped": "wild",
    r"texts with line breaks (may be missed|match although they contain it); .*": "lines",
}
"""Sentences of approximations, and the word by which the columns know what each admits."""


@dataclass(frozen=True)
class Said:
    """What a driver said of one filter row.

    Attributes:
        exact: It claims that the clause means what the filter row says.
        admits: What its approximations admit, in the words of `READ`.
        limit: Longer strings are not found.
        unread: Approximations that no reading knows: the row is not judged.
    """

    exact: bool = True
    admits: frozenset[str] = frozenset()
    limit: int | None = None
    unread: tuple[str, ...] = field(default=())

    @property
    def case(self) -> bool:
        """Whether letter case is compared although the filter row does not ask for it."""
        return "case" in self.admits


def read(explained: Explanation) -> Said:
    """Read the explanation of one filter row."""
    admits, limit, unread = set(), None, []
    for sentence in explained.approximations:
        found = next(
            ((re.fullmatch(each, sentence), word) for each, word in READ.items() if re.fullmatch(each, sentence)), None
        )
        if found is None or found[0] is None:
            unread.append(sentence)
            continue
        admits.add(found[1])
        if found[1] == "limit":
            limit = int(found[0]["limit"])
    return Said(explained.exact, frozenset(admits), limit, tuple(unread))

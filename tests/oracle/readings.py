"""What the drivers' explanations admit: an approximation must say how its clause differs, and is held to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman_api.filters import Explanation

READ = {
    r"rows without '.*' match too": "absent",
    r"rows written before '.*' was added to the collection are missing": "absent",
    r"no other row of element .* is on '.*'": "alone",
    # texts
    r"analysed text: compares words, not the exact text": "words",
    r"analysed text: finds whole words in this order, anywhere in the text": "words",
    r"compares .*: a text that contains them all matches, in any order": "words",
    r"compares .*: a text that contains (one of them|all of one value) is left out(, in any order)?": "words",
    r"compares words: finds them in any order, anywhere in the text": "words",
    r"finds texts in which any word (starts|ends) with it": "words",
    r"the .* may be in different elements": "words",
    r"words that are not indexed \(stopwords\) are left out": "stopwords",
    r"white space around the text is not compared": "trimmed",
    r"\* and \? stand for any characters; they cannot be escaped": "wild",
    r"texts with line breaks (may be missed|match although they contain it)(; .*)?": "lines",
    r"letter case is compared(: this version of the server cannot ignore it)?": "case",
    r"letter case is ignored for ASCII letters only": "ascii",
    r"letter case is not compared": "folded",
    r"İ is compared as i": "dotted",
    r"texts are compared as the normalizer .* changes them": "any",
    r"accents are not compared: .*": "any",
    r"compares the values of all keys": "any",
    # what an index leaves out or adds
    r"strings longer than (?P<limit>\d+)[\d, ]* characters are not indexed( in .*)?": "limit",
    r"values that the type cannot hold are not indexed \(ignore_malformed\)": "malformed",
    r"the mapping's null_value makes stored nulls count as values": "nulls",
    r"stored nulls count as the value .* \(null_value\)": "nulls",
    r"values of .* count too \(copy_to\)": "any",
    r"a stored empty text counts as false": "malformed",
    r"empty values count as null too": "empty",
    r"distances are computed to about half a metre: a point at the border may count as on its other side": "border",
    r"points are kept to about a centimetre: one at the border may count as on its other side": "border",
    r"coordinates are compared as 32-bit floats, to about two metres": "border",
    r"at most the nearest 800 rows of a shard are found, by an index that is approximate": "nearest",
    # numbers and dates
    r"numbers are compared (with \d+ bits, about \d+ digits|as multiples of 1/.*)": "rounded",
    r"a stored number with decimals counts without them \(coerce\)": "coerced",
    r"integers beyond 2\^53 are compared as 64-bit floats": "floats",
    r".* is compared as .*, the nearest 64-bit float": "floats",
    r"stored integers from 2\^63 - 512 on compare as the smallest": "ends",
    r"below 1\.38, -0\.0 is not 0\.0 and compares as the smallest number": "any",
    r"dates outside .* compare as other dates": "ends",
    r"dates are compared to the millisecond": "millis",
    r"digits beyond nanoseconds are not compared": "nanos",
    r"the indices behind this name read dates in different formats: .*": "any",
    r"an index behind this name stores the field without a mapping: .*": "any",
    r"an object counts as null where it has no value of its own": "any",
    r"compares texts: 10 comes before 9": "any",
}
"""Sentences of approximations, and the word by which the columns know what each admits; `any` row."""


_LOOK = re.compile(r"; (a row holds .*|none in [\d,]+ rows with a value|so in row .*|no row has one)")
"""What a look at stored rows adds to a sentence."""


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
    for told in [*explained.approximations, *explained.unlikely]:
        sentence = _LOOK.sub("", told)
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

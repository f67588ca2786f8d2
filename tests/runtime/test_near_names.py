"""Near names are found in bounded time, whatever the names are."""

from __future__ import annotations

import random
import time

import pytest

from dragoman.spellings import COMPARED_NAMES, LONGEST_NAME, near_names


def shuffled(letters: str, seed: int) -> str:
    chosen = list(letters)
    random.Random(seed).shuffle(chosen)
    return "".join(chosen)


@pytest.mark.parametrize("length", [90, LONGEST_NAME, 3_900])
def test_names_made_to_resemble_each_other_cost_no_more_than_a_few_comparisons(length):
    """Comparing all 4,096 of 3,900 characters took 33 s; the bound is generous, the work is not."""
    wanted = "".join(random.Random(1).choices("abcdefghijklmnop", k=length))
    orders = [shuffled(wanted, at) for at in range(64)]
    known = [letters[at:] + letters[:at] for letters in orders for at in range(64)]
    assert len(set(known)) == 4_096
    began = time.perf_counter()
    near_names(wanted, known)
    assert time.perf_counter() - began < 5


def test_only_a_few_names_are_compared_letter_by_letter(monkeypatch):
    compared = []
    monkeypatch.setattr("difflib.get_close_matches", lambda wanted, known, **_: compared.append(len(known)) or [])
    near_names("column", (f"column{at}" for at in range(100_000)))
    assert compared == [COMPARED_NAMES]


@pytest.mark.parametrize(
    ("wanted", "known", "near"),
    [
        ("titel", ["title", "price", "tags"], ["title"]),
        ("boks", ["orders", "books", "b" * 5_000], ["books"]),
        ("Title", ["title"], ["title"]),
        ("nothing-like-it", ["title"], []),
        ("x" * 101, ["x" * 100], []),
        ("", ["a"], []),
    ],
)
def test_what_somebody_meant_is_still_found(wanted, known, near):
    assert near_names(wanted, known) == near

"""A bookshop's data, the same on every run: 480 books, and 12,003 orders with their items."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BOOKS, ORDERS, LARGE_ORDERS = 480, 12_003, 1_204

_NAMED = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
MAPPINGS: dict[str, dict[str, Any]] = {
    "books": {
        "title": _NAMED,
        "author": {"properties": {"name": _NAMED, "born": {"type": "integer"}}},
        "price": {"type": "double"},
        "isbn": {"type": "keyword"},
        "tags": {"type": "keyword"},
        "published": {"type": "date"},
        "in_stock": {"type": "boolean"},
        "pages": {"type": "integer"},
        "rating": {"type": "float"},
        "ratings": {"type": "byte"},
        "copies_sold": {"type": "long"},
        "blurb": {"type": "text"},
    },
    "orders": {
        "customer": {"properties": {"name": _NAMED, "city": {"type": "keyword"}}},
        "status": {"type": "keyword"},
        "placed_at": {"type": "date"},
        "total": {"type": "double"},
        "ledger": {"type": "long"},
        "gift": {"type": "boolean"},
        "note": {"type": "text"},
        "items": {
            "type": "nested",
            "properties": {"sku": _NAMED, "qty": {"type": "integer", "coerce": False}, "price": {"type": "double"}},
        },
    },
}
SHARDS = {"books": 1, "orders": 3}

_FIRST = [
    "Ada",
    "Bruno",
    "Chiara",
    "Dmitri",
    "Elif",
    "Farid",
    "Grace",
    "Hana",
    "Ines",
    "Jorge",
    "Kenji",
    "Leila",
    "Marta",
    "Nils",
    "Olga",
    "Priya",
    "Ravi",
    "Sofia",
]
_LAST = [
    "Almeida",
    "Brandt",
    "Castillo",
    "Dubois",
    "Eriksson",
    "Fischer",
    "Haddad",
    "Ito",
    "Jansen",
    "Kowalski",
    "Moreau",
    "Novak",
    "Okafor",
    "Singh",
]
_CITIES = ["Lisbon", "Leipzig", "Kraków", "Osaka", "Toronto", "Nairobi", "São Paulo", "Malmö", "Pune", "Ghent"]
_ADJECTIVES = [
    "Quiet",
    "Borrowed",
    "Northern",
    "Invisible",
    "Second",
    "Long",
    "Paper",
    "Salt",
    "Winter",
    "Open",
    "Distant",
    "Copper",
    "Lost",
]
_NOUNS = [
    "Harbour",
    "Atlas",
    "Garden",
    "River",
    "Letters",
    "Clock",
    "Archive",
    "Orchard",
    "Bridge",
    "Island",
    "Library",
    "Weather",
    "Alphabet",
]
_TAGS = ["fiction", "history", "science", "travel", "poetry", "children", "cooking", "art", "crime", "essays"]
_STATUSES = ("open", "paid", "shipped", "shipped", "delivered", "delivered", "delivered", "cancelled")
_NOTES = [
    "Leave it with the neighbour.",
    "Please wrap as a gift.",
    "Ring twice, the bell is quiet.",
    "Deliver after six.",
]
_SKUS = [f"{shelf}-{number:02d}" for shelf in "ABCDEFGH" for number in range(1, 31)]

Document = tuple[str, dict[str, Any]]


def documents(name: str) -> Iterator[Document]:
    """Yield id and document of every row of `books` or `orders`."""
    random = Random(f"dragoman {name}")
    return _books(random) if name == "books" else _orders(random)


def _books(random: Random) -> Iterator[Document]:
    for number in range(1, BOOKS + 1):
        born = random.randint(1890, 1995)
        year = min(2025, born + random.randint(22, 70))
        title = f"The {random.choice(_ADJECTIVES)} {random.choice(_NOUNS)}"
        scores = [random.randint(1, 5) for _ in range(random.randint(0, 12))]
        if number == 42:
            # A grid cuts this cell: its JSON is longer than 10,000 characters.
            scores = [random.randint(1, 5) for _ in range(6_000)]
        book: dict[str, Any] = {
            "title": title if number % 9 else f"{title}, volume {number // 9}",
            "author": {"name": f"{random.choice(_FIRST)} {random.choice(_LAST)}", "born": born},
            "price": random.randint(400, 5_900) / 100,
            "isbn": f"978-{random.randint(10, 99)}-{random.randint(1_000_000, 9_999_999)}-{number % 10}",
            "tags": random.sample(_TAGS, random.randint(1, 3)),
            "published": f"{year}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}",
            "in_stock": random.random() < 0.8,
            "pages": random.randint(64, 980),
            "rating": round(sum(scores) / len(scores), 1) if scores else None,
            "ratings": scores,
            "copies_sold": random.randint(200, 90_000),
            "blurb": f"a {random.choice(_ADJECTIVES)} story of the {random.choice(_NOUNS)} and its keepers".lower(),
        }
        _leave_out(book, number)
        yield str(number), book


def _leave_out(book: dict[str, Any], number: int) -> None:
    if number % 31 == 0:
        book["price"] = None
    if number % 23 == 0:
        del book["author"]["born"]
    if number % 40 == 0:
        del book["tags"]
    if number == 7:
        book["copies_sold"] = 9_007_199_254_740_993


def _orders(random: Random) -> Iterator[Document]:
    pinned = {8812: 94_120, 1177: 90_300}
    rest = [number for number in range(1, ORDERS + 1) if number not in pinned]
    large = set(random.sample(rest, LARGE_ORDERS - len(pinned)))
    for number in range(1, ORDERS + 1):
        cents = pinned.get(number) or (_large(random) if number in large else random.randint(350, 9_999))
        day, second = divmod(number * 2_629, 86_400)
        clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        placed = f"2025-{day // 31 + 1:02d}-{day % 28 + 1:02d}T{clock}Z"
        order: dict[str, Any] = {
            "customer": {"name": f"{random.choice(_FIRST)} {random.choice(_LAST)}", "city": random.choice(_CITIES)},
            "status": random.choice(_STATUSES),
            "placed_at": placed,
            "total": cents / 100,
            "ledger": 9_200_000_000_000_000_000 + number * 7,
            "gift": number % 11 == 0,
            "items": _items(random, cents),
        }
        if number % 5 == 0:
            order["note"] = random.choice(_NOTES)
        if number % 17 == 0:
            order["customer"]["city"] = None
        if number == 8812:
            order["items"] = _pair("A-17", "C-03", 94_120)
        if number == 1177:
            order["items"] = _pair("B-01", None, 90_300)
        yield str(number), order


def _large(random: Random) -> int:
    # Few orders are very large; only the two pinned ones are above 900.
    return 10_000 + int(79_900 * random.random() ** 4)


def _items(random: Random, cents: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    while len(items) < 3 and cents > 700 and random.random() < 0.55:
        qty = random.randint(1, 4)
        price = random.randint(100, max(101, cents // (2 * qty)))
        items.append({"sku": random.choice(_SKUS), "qty": qty, "price": price / 100})
        cents -= qty * price
    return [*items, {"sku": random.choice(_SKUS), "qty": 1, "price": cents / 100}]


def _pair(first: str, second: str | None, cents: int) -> list[dict[str, Any]]:
    half = cents // 4
    items: list[dict[str, Any]] = [
        {"sku": first, "qty": 3, "price": half / 100},
        {"sku": second, "qty": 1, "price": (cents - 3 * half) / 100},
    ]
    if second is None:
        # The array's leaf column then has a null for this item.
        del items[1]["sku"]
    return items


def bulk_bodies(name: str, size: int = 3_000) -> Iterator[bytes]:
    """Yield the documents as bodies of `_bulk`."""
    lines: list[str] = []
    for doc_id, document in documents(name):
        lines += (f'{{"index":{{"_id":"{doc_id}"}}}}', json.dumps(document, ensure_ascii=False, separators=(",", ":")))
        if len(lines) >= 2 * size:
            yield ("\n".join(lines) + "\n").encode()
            lines.clear()
    if lines:
        yield ("\n".join(lines) + "\n").encode()

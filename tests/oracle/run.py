"""A run of the oracle: worlds and calls from seeds, differences made small, and how to repeat each."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio

from dragoman_api import DragomanError

from . import elasticsearch, weaviate
from .calls import CHANGES, Call, DifferenceError, Tally, check
from .known import known

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .calls import Stored
    from .columns import Column

CALLS_OF_A_WORLD = 40
"""Calls in a row that share mappings and documents; the seed of a call names its world."""

AT_A_TIME = 4
"""Calls that run at the same time."""

MOST_SHOWN = 12
_TRIES = 60  # worlds that are built to make one difference small
DRIVERS: dict[str, Any] = {"elasticsearch": elasticsearch, "opensearch": elasticsearch, "weaviate": weaviate}


@dataclass(kw_only=True)
class Found:
    """One difference.

    Attributes:
        driver: The driver.
        target: The server.
        seed: Of the call.
        call: The call.
        error: What differs.
        world: The documents it was seen on.
        times: Calls with the same kind of difference.
    """

    driver: str
    target: str
    seed: int
    call: Call
    error: DifferenceError
    world: Any
    known: str = ""
    times: int = 1

    @property
    def columns(self) -> list[Any]:
        """The columns that the call names."""
        names = {each.column for each in (*self.call.rows, *self.call.sort)} | {*self.call.values, self.call.column}
        names |= {self.call.time.column} if self.call.time else set()
        return [each for each in self.world.columns(self.call.object) if each.name in names]

    @property
    def types(self) -> set[str]:
        """The server's types of these columns."""
        return {each.type for each in self.columns}

    @property
    def sort_of(self) -> str:
        """What it is alike with: one is shown of each."""
        if self.culprit is not None:
            return f"{self.error.kind} {self.culprit.name}"
        rows = " ".join(sorted(f"{each.column} {each.op}" for each in self.call.rows))
        return f"{self.error.kind} {rows} {[each.column for each in self.call.sort if self.error.kind == 'order']}"

    @property
    def culprit(self) -> Column | None:
        """The column whose value is wrong."""
        return next((each for each in self.world.columns(self.call.object) if each.name == self.error.column), None)

    def command(self) -> str:
        """Repeat the call."""
        return f"python -m tests.oracle {self.driver} --seed {self.seed} --calls 1"

    def __str__(self) -> str:
        said = [
            f"  {'exact' if each.exact else 'approximate'} {sorted(each.admits)} {each.unread or ''}"
            for each in self.error.said
        ]
        notes = [f"  note: {note}" for note in self.error.notes]  # type: ignore[attr-defined]
        return "\n".join([
            f"seed {self.seed} on {self.target}: {self.error.kind}{f' (known: {self.known})' if self.known else ''}",
            f"  call: {self.call}", *said, *notes,
            f"  expected: {self.error.expected}", f"  got: {self.error.got}",
            *(f"  {line}" for line in self.world.shown().splitlines()), f"  again: {self.command()}",
        ])  # fmt: skip

    def as_data(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return {
            "seed": self.seed, "kind": self.error.kind, "call": str(self.call), "expected": repr(self.error.expected),
            "got": repr(self.error.got), "world": self.world.shown(), "known": self.known, "times": self.times,
            "again": self.command(),
        }  # fmt: skip


@dataclass
class Report:
    """What a run found."""

    driver: str
    target: str
    calls: int = 0
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)
    new: dict[str, Found] = field(default_factory=dict)
    known: Counter[str] = field(default_factory=Counter)
    seeds: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"{self.calls:,} calls in {self.seconds:.0f} s on {self.target}"]
        parts.append(" ".join(f"{kind} {count:,}" for kind, count in self.tally.kinds.most_common()))
        parts.append(" ".join(f"{kind} {count:,};" for kind, count in self.tally.answers.most_common()))
        parts += [f"known: {name} {count:,}, first seed {self.seeds[name]}" for name, count in self.known.most_common()]
        parts += [
            f"not judged, for no reading knows it: {text!r} {count}"
            for text, count in self.tally.unread.most_common(20)
        ]
        shown = sorted(self.new.values(), key=lambda each: -each.times)
        parts += [f"\n{each.times}x {each}" for each in shown[:MOST_SHOWN]]
        parts += [f"{each.times}x seed {each.seed}: {each.error.kind} of {each.call}" for each in shown[MOST_SHOWN:]]
        parts.append(f"{sum(each.times for each in shown):,} differences of {len(shown)} sorts")
        return "\n".join(parts)

    def as_data(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return {
            "driver": self.driver, "target": self.target, "calls": self.calls, "seconds": round(self.seconds, 1),
            "kinds": dict(self.tally.kinds), "answers": dict(self.tally.answers), "unread": dict(self.tally.unread),
            "known": dict(self.known), "seeds": self.seeds,
            "differences": [each.as_data() for each in self.new.values()],
        }  # fmt: skip


async def run(
    driver: str,
    rig: Any,
    target: str,
    *,
    seed: int,
    calls: int,
    shrink: int = MOST_SHOWN,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Make calls with the seeds that follow `seed`, and collect what differs."""
    kind = DRIVERS[driver]
    report = Report(driver, target)
    takes = await kind.taken(rig)
    if rig.fake is not None:
        rig.fake.faults.clear()
    began = said = monotonic()
    for of in range(seed // CALLS_OF_A_WORLD, (seed + calls - 1) // CALLS_OF_A_WORLD + 1):
        world = kind.world(Random(f"world {of}"), f"oracle{of}", takes)
        await world.build(rig)
        first = of * CALLS_OF_A_WORLD
        numbers = range(max(seed, first), min(seed + calls, first + CALLS_OF_A_WORLD))
        made = {number: world.call(Random(f"call {number}")) for number in numbers}
        for number, error in (await answered(rig, world, made, report.tally)).items():
            found = Found(driver=driver, target=target, seed=number, call=made[number], error=error, world=world)
            if entry := known(found):
                report.known[entry.name] += 1
                report.seeds.setdefault(entry.name, number)
            elif (like := report.new.get(found.sort_of)) is not None:
                like.times += 1
            else:
                report.new[found.sort_of] = await smallest(rig, found) if len(report.new) < shrink else found
        report.calls += len(numbers)
        await world.remove(rig)
        if monotonic() - said > 5:
            said = monotonic()
            say(f"{report.calls:,} of {calls:,} calls, {sum(each.times for each in report.new.values())} differences")
    report.seconds = monotonic() - began
    return report


async def answered(rig: Any, world: Any, calls: dict[int, Call], tally: Tally) -> dict[int, DifferenceError]:
    """Make the calls of a world, reads first and several at a time, as they come to one connection."""
    errors: dict[int, DifferenceError] = {}
    room = anyio.CapacityLimiter(AT_A_TIME)

    async def make(number: int, call: Call) -> None:
        async with room:
            if (error := await differs(rig, world, call, tally)) is not None:
                errors[number] = error

    async with anyio.create_task_group() as tasks:
        for number, call in calls.items():
            if call.kind not in CHANGES:
                tasks.start_soon(make, number, call)
    for number, call in calls.items():
        if call.kind in CHANGES:
            await make(number, call)
    return dict(sorted(errors.items()))


async def differs(rig: Any, world: Any, call: Call, tally: Tally) -> DifferenceError | None:
    """Make one call; a fault of any kind is a difference too."""
    try:
        await check(rig, world, call, tally)
    except DifferenceError as error:
        return error
    except DragomanError as error:
        return DifferenceError("error", "an answer", f"{type(error).__name__}: {error}")
    except Exception:  # a driver may only raise errors of its own tree
        return DifferenceError("fault", "an answer", traceback.format_exc(limit=-4))
    finally:
        if rig.fake is not None and rig.fake.faults:
            faults = [f"{each.reason} ({each.method} {each.target})" for each in rig.fake.faults]
            rig.fake.faults.clear()
            tally.answers[f"not reproduced by the fake: {faults[0][:80]}"] += 1
    return None


async def smallest(rig: Any, found: Found) -> Found:
    """Drop columns, documents and filter rows while the difference remains."""
    tries = 0

    async def still(rows: Sequence[Stored], columns: frozenset[str] | None, call: Call) -> Found | None:
        nonlocal tries
        tries += 1
        world = found.world.smaller(rows, columns, str(tries))
        called = world.renamed(call, str(tries))
        try:
            await world.build(rig)
            error = await differs(rig, world, called, Tally())
        except AssertionError:
            return None
        finally:
            await world.remove(rig)
        if error is None or error.kind != found.error.kind:
            return None
        return replace(found, world=world, call=called, error=error)

    rows, call = list(found.world.rows), found.call
    if await still(rows, None, call) is None:  # what other calls left behind made it, or chance
        return found
    best = found
    used = frozenset({each.column for each in (*call.rows, *call.sort)} | {*call.values, call.column})
    used |= {call.time.column} if call.time else set()
    columns: frozenset[str] | None = used
    if (smaller := await still(rows, columns, call)) is not None:
        best = smaller
    else:
        columns = None
    for at in reversed(range(len(call.rows))):
        fewer = replace(call, rows=call.rows[:at] + call.rows[at + 1 :])
        if (smaller := await still(rows, columns, fewer)) is not None:
            best, call = smaller, fewer
    for at in reversed(range(len(call.sort))):
        fewer = replace(call, sort=call.sort[:at] + call.sort[at + 1 :])
        if (smaller := await still(rows, columns, fewer)) is not None:
            best, call = smaller, fewer
    step = max(1, len(rows) // 2)
    while tries < _TRIES:
        for start in range(0, len(rows), step):
            kept = rows[:start] + rows[start + step :]
            if call.id and call.kind != "insert" and not any(row.id == call.id for row in kept):
                continue
            if tries < _TRIES and (smaller := await still(kept, columns, call)) is not None:
                best, rows = smaller, kept
                break
        else:
            if step == 1:
                break
            step //= 2
        step = max(1, min(step, len(rows) // 2))
    return best

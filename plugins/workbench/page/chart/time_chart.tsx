/** Rows over time above the grid: bars that are dragged over, or gone through with the arrows, to show their rows. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { GridController } from "../grid/controller.ts";
import type { ChartChoice } from "../grid/time_columns.ts";
import { NotesLine } from "../grid/notes_line.tsx";
import { spanLabel } from "../grid/time_spans.ts";
import type { Column, Summarized, TimeColumn } from "../messages.ts";
import { Button, asFailure } from "../ui/controls.tsx";
import { whole } from "../ui/figures.ts";
import { openMenu } from "../ui/menu.tsx";
import { textOf } from "../wire/cells.ts";
import { instant } from "../wire/previews.ts";
import { type TimeBar, joined, lengthWords, marks, narrowing, padded, rangeOf, spanWithin, spanWords, timeBars } from "./bars.ts";

const BUCKETS = 50;
const PAUSE = 100;
const MARKS = 8;

interface Answer {
  readonly of: string;
  readonly summary: Summarized | null;
  readonly failed: unknown;
}

/** Count rows by time once the rows themselves have come; what was counted before stays until then. */
function useBars(grid: GridController, column: string) {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [again, setAgain] = useState(0);
  const [waits, setWaits] = useState(true);
  grid.status.value; // rows have come, or others are asked for
  const { rows } = grid;
  const arrived = rows.columns.length > 0;
  useEffect(() => {
    setWaits(true);
    if (!arrived) return;
    const stop = new AbortController();
    const show = (summary: Summarized | null, failed: unknown) => {
      if (stop.signal.aborted) return;
      setAnswer({ of: column, summary, failed });
      setWaits(false);
    };
    const timer = setTimeout(() => {
      const counted = grid.summary(column, { values: 0, buckets: BUCKETS }, stop.signal);
      counted.then((summary) => show(summary, null), (failed: unknown) => show(null, failed));
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [grid, rows, arrived, column, again]);
  return { answer: answer?.of === column ? answer : null, waits, retry: () => setAgain((count) => count + 1) };
}

export function TimeChart({ grid, choice, time }: { grid: GridController; choice: ChartChoice; time: TimeColumn | null }) {
  const column = choice.column!;
  const { answer, waits, retry } = useBars(grid, column.name);
  const [marked, setMarked] = useState<Marked | null>(null);
  const summary = answer?.summary ?? null;
  const ofSpan = time?.column === column.name;
  const [since, until] = limits(grid, column, ofSpan);
  const bars = summary ? padded(timeBars(summary.bars), since, until) : [];
  const shown = marked && marked.bars === bars.length ? joined(bars, marked.from, marked.to) : null;
  useEffect(() => setMarked(null), [summary]);
  return (
    <section class={waits && answer ? "time-chart late" : "time-chart"} aria-label="Rows over time" aria-busy={waits}>
      <div class={shown ? "time-chart-line marked" : "time-chart-line"}>
        <Columns choice={choice} column={column} />
        {bars.length > 0 && summary && (
          <>
            <span class="time-chart-words" title={["In UTC, as the cells are", summary.approximate.buckets].filter(Boolean).join("; ")}>
              {ofSpan && spanNamed(grid, time!)}
              {spanOf(bars, summary)}
            </span>
            <span class="time-chart-told">{shown ? rowsOf(shown, summary) : atRest(bars, summary)}</span>
            {summary.notes.length > 0 && <NotesLine notes={summary.notes} />}
          </>
        )}
        {!bars.length && <State answer={answer} retry={retry} />}
      </div>
      {(bars.length > 1 || (!answer && waits)) && (
        <Plot key={column.name} grid={grid} column={column} ofSpan={ofSpan} bars={bars} summary={summary} marked={marked} mark={setMarked} />
      )}
    </section>
  );
}

/** Between which instants rows were asked for; where there is no bound, the bars set it. */
function limits(grid: GridController, column: Column, ofSpan: boolean): [number, number] {
  const { since, until } = rangeOf(column, grid.query.value.filters);
  const range = ofSpan ? grid.status.value.time : null;
  const least = Math.max(since?.at ?? -Infinity, range?.since ? Date.parse(range.since) : -Infinity);
  const greatest = range?.until ? Date.parse(range.until) : range?.since ? Date.now() : Infinity;
  const most = Math.min(until?.at ?? Infinity, greatest);
  return [least === -Infinity ? Infinity : least, most === Infinity ? -Infinity : most];
}

/** The name of the span that was asked for, if it has one. */
function spanNamed(grid: GridController, time: TimeColumn): string {
  const { span } = grid.query.value;
  const name = spanLabel(span, time);
  return name.startsWith("last ") ? `${name}: ` : "";
}

/** Which column it is; a menu where there are several. */
function Columns({ choice, column }: { choice: ChartChoice; column: Column }) {
  if (choice.all.length < 2) return <strong class="time-chart-column">{column.name}</strong>;
  const open = (event: MouseEvent) =>
    openMenu(
      "Column of the chart",
      choice.all.map(({ name }) => ({ label: name, checked: name === column.name, run: () => choice.choose(name) })),
      (event.currentTarget as Element).getBoundingClientRect(),
    );
  return <Button icon="down" label={column.name} title="Choose the column of the chart" tone="quiet" onClick={open} />;
}

/** Why there are no bars. */
function State({ answer, retry }: { answer: Answer | null; retry: () => void }) {
  if (!answer) return <span class="muted" role="status">Counting …</span>;
  const { summary, failed } = answer;
  if (!summary) {
    const { message } = asFailure(failed);
    return (
      <>
        <span class="time-chart-words bad" role="alert" title={message}>No chart: {message}</span>
        <Button icon="refresh" label="Try again" tone="quiet" onClick={retry} />
      </>
    );
  }
  const reason = summary.absent.buckets;
  const none = summary.rows ? "no row has a time here" : "there are no rows";
  return <span class="time-chart-words muted" role="status" title={reason}>{reason ? `No chart: ${reason}` : `Nothing to draw: ${none}`}</span>;
}

/** A mark before a figure that is only estimated. */
function estimated(summary: Summarized, figure: string): string {
  return figure in summary.approximate ? "≈ " : "";
}

function rowsOf(bar: TimeBar, summary: Summarized): string {
  return `${estimated(summary, "buckets")}${whole(bar.rows)} ${bar.rows === 1 ? "row" : "rows"}, ${spanWords(bar)}`;
}

/** What all bars say together. */
function spanOf(bars: readonly TimeBar[], { minimum, maximum }: Summarized): string {
  const [least, greatest] = [textOf(minimum), textOf(maximum)];
  if (least !== null && least === greatest) return `all at ${instant(least)}`;
  const all = spanWords(joined(bars, 0, bars.length - 1));
  return bars.length > 1 ? `${all}, bars of ${lengthWords(bars[0])}` : all;
}

/** How high the bars are, and what they do not count. */
function atRest(bars: readonly TimeBar[], summary: Summarized): string {
  const most = Math.max(...bars.map(({ rows }) => rows));
  const height = bars.length > 1 ? [`up to ${estimated(summary, "buckets")}${whole(most)} ${most === 1 ? "row" : "rows"} a bar`] : [];
  const rest = summary.missing ? [`${estimated(summary, "missing")}${whole(summary.missing)} rows have no time here`] : [];
  return [...height, ...rest].join("; ");
}

/** The bars that are pointed at, gone through or dragged over, by number; `bars` is how many there were. */
interface Marked {
  readonly from: number;
  readonly to: number;
  readonly bars: number;
}

function Plot({ grid, column, ofSpan, bars, summary, marked, mark }: {
  grid: GridController;
  column: Column;
  /** It is the column of the span. */
  ofSpan: boolean;
  bars: readonly TimeBar[];
  summary: Summarized | null;
  marked: Marked | null;
  mark: (marked: Marked | null) => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  const drags = useRef<number | null>(null);
  const most = Math.max(1, ...bars.map(({ rows }) => rows));
  const query = grid.query.value;
  const range = ofSpan ? grid.status.value.time : null;
  const why = grid.widens && !range ? "The filter matches any of its rows, so a further one would show more rows." : "";
  const to = (from: number, last: number) => mark({ from, to: last, bars: bars.length });
  const narrow = (from: number, last: number) => {
    const span = joined(bars, from, last);
    // a part of a span is a span: with a filter beside it, "last 24 hours" would go on, and leave the part behind
    if (range) return span.rows ? grid.ask({ ...query, span: spanWithin(span, range) }) : undefined;
    const rows = span.rows && !why ? narrowing(column, span, query.filters) : null;
    if (rows) grid.narrow(rows.rows, rows.needless);
  };
  const at = (event: PointerEvent): number => {
    const { left, width } = list.current!.getBoundingClientRect();
    return Math.max(0, Math.min(bars.length - 1, Math.floor(((event.clientX - left) / width) * bars.length)));
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0 || !event.isPrimary || !bars.length) return;
    list.current!.setPointerCapture(event.pointerId);
    drags.current = at(event);
    to(drags.current, drags.current);
  };
  const move = (event: PointerEvent) => bars.length > 0 && to(drags.current ?? at(event), at(event));
  const up = (event: PointerEvent) => {
    if (drags.current === null) return;
    const from = drags.current;
    drags.current = null;
    narrow(from, at(event));
  };
  const drop = () => {
    drags.current = null;
    mark(null);
  };
  const key = (event: KeyboardEvent) => {
    const last = bars.length - 1;
    const now = marked?.to ?? -1;
    const next = { ArrowLeft: now < 0 ? last : now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape" && marked) drop();
    else if (event.key === "Enter" && marked) narrow(marked.from, marked.to);
    else if (next !== undefined && bars.length) {
      const place = Math.max(0, Math.min(last, next));
      to(event.shiftKey && marked ? marked.from : place, place);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const [low, high] = marked ? [Math.min(marked.from, marked.to), Math.max(marked.from, marked.to)] : [-1, -1];
  const chosen = (number: number) => number >= low && number <= high;
  return (
    <div class="time-chart-plot">
      <div
        class="time-chart-bars"
        role="listbox"
        aria-label="Bars: arrows go through them, with Shift over several; Enter shows their rows"
        aria-multiselectable="true"
        aria-activedescendant={marked && bars.length ? `bar-${marked.to}` : undefined}
        title={why || undefined}
        tabIndex={0}
        ref={list}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={drop}
        onPointerLeave={() => drags.current === null && document.activeElement !== list.current && mark(null)}
        onBlur={drop}
        onKeyDown={key}
      >
        {bars.map((bar, number) => (
          <div
            key={bar.from}
            id={`bar-${number}`}
            role="option"
            class="time-chart-bar"
            aria-selected={chosen(number)}
            aria-label={summary ? rowsOf(bar, summary) : ""}
          >
            <span style={{ height: `${bar.rows ? Math.max(3, (100 * bar.rows) / most) : 0}%` }} />
          </div>
        ))}
      </div>
      <div class="time-chart-scale" aria-hidden="true">
        {marks(bars, MARKS).map(({ at: share, text }, number) => (
          <span key={share} class={number % 2 ? "minor" : ""} style={{ left: `${100 * share}%` }}>{text}</span>
        ))}
      </div>
    </div>
  );
}

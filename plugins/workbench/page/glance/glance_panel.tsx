/** One column at a glance, in full: every figure with how sure it is; a click on a value or a bar filters by it. */

import { useEffect, useState } from "preact/hooks";
import type { GridController } from "../grid/controller.ts";
import type { Bar, Filter as FilterRow, Summarized } from "../messages.ts";
import { ErrorBox, Notes, Waiting } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { whole } from "../ui/figures.ts";
import { about, rowsForBar, rowsForValue, share, shownText } from "./figures.ts";

const VALUES = 20;
const BARS = 30;

export function GlancePanel({ grid, column, close }: { grid: GridController; column: string; close: () => void }) {
  const [summary, setSummary] = useState<Summarized | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  useEffect(() => {
    const stop = new AbortController();
    grid.summary(column, { values: VALUES, buckets: BARS }, stop.signal).then(setSummary, (error: unknown) => {
      if (!stop.signal.aborted) setFailed(error);
    });
    return () => stop.abort();
  }, [column]);
  const { widens } = grid;
  const filter = (rows: FilterRow[]) => {
    grid.narrow(rows);
    close();
  };
  return (
    <Dialog title={`${column} at a glance`} onClose={close}>
      {failed !== null && <ErrorBox error={failed} />}
      {!summary && failed === null && <Waiting what="Counting …" />}
      {summary && (
        <div class="glance-panel">
          <Figures summary={summary} />
          {summary.bars.length > 1 && <Bars summary={summary} filter={widens ? null : filter} />}
          {summary.values.length > 0 && <Values summary={summary} filter={widens ? null : filter} />}
          {widens && <p class="muted">The filter matches any of its rows, so a further one would show more rows.</p>}
          <Notes notes={summary.notes} all />
        </div>
      )}
    </Dialog>
  );
}

const FIGURES = [
  ["rows", "rows"],
  ["missing", "without a value"],
  ["distinct", "different values"],
  ["minimum", "minimum"],
  ["maximum", "maximum"],
] as const;

function Figures({ summary }: { summary: Summarized }) {
  const text = (figure: (typeof FIGURES)[number][0]): string => {
    const value = summary[figure];
    if (value === null) return "unknown";
    if (typeof value !== "number") return shownText(value);
    return whole(value) + (figure === "missing" && value ? ` (${share(value, summary.rows)})` : "");
  };
  const given = FIGURES.filter(([figure]) => summary[figure] !== null || figure in summary.absent);
  const others = ["values", "buckets"].filter((figure) => figure in summary.approximate || figure in summary.absent);
  return (
    <dl class="glance-figures">
      {given.map(([figure, label]) => (
        <div key={figure}>
          <dt>{label}</dt>
          <dd>
            {about(summary, figure)}
            {text(figure)}
            <Why summary={summary} figure={figure} />
          </dd>
        </div>
      ))}
      {others.map((figure) => (
        <div key={figure}>
          <dt>{figure === "values" ? "frequent values" : "histogram"}</dt>
          <dd><Why summary={summary} figure={figure} /></dd>
        </div>
      ))}
    </dl>
  );
}

/** Why a figure is only estimated, or not there. */
function Why({ summary, figure }: { summary: Summarized; figure: string }) {
  const [estimated, absent] = [summary.approximate[figure], summary.absent[figure]];
  return (
    <>
      {estimated && <span class="muted"> estimated: {estimated}</span>}
      {absent && <span class="muted"> {absent}</span>}
    </>
  );
}

type Filter = ((rows: FilterRow[]) => void) | null;

function Bars({ summary, filter }: { summary: Summarized; filter: Filter }) {
  const most = Math.max(1, ...summary.bars.map((bar) => bar.rows));
  const range = (bar: Bar) => `${shownText(bar.lower)} to below ${shownText(bar.upper)}`;
  return (
    <section aria-label="Histogram">
      <h3>Histogram</h3>
      <ol class="glance-histogram">
        {summary.bars.map((bar, at) => {
          const rows = filter && bar.rows ? rowsForBar(summary, bar) : null;
          const said = `${range(bar)}: ${about(summary, "buckets")}${whole(bar.rows)} rows`;
          return (
            <li key={at}>
              <button
                type="button"
                disabled={!rows}
                aria-label={`${said}; filter by them`}
                title={said}
                onClick={() => rows && filter?.(rows)}
              >
                <span style={{ height: `${bar.rows ? Math.max(2, (100 * bar.rows) / most) : 0}%` }} />
              </button>
            </li>
          );
        })}
      </ol>
      <p class="glance-ends">
        <span>{shownText(summary.bars[0].lower)}</span>
        <span>{shownText(summary.bars[summary.bars.length - 1].upper)}</span>
      </p>
    </section>
  );
}

function Values({ summary, filter }: { summary: Summarized; filter: Filter }) {
  const most = Math.max(1, summary.rows);
  return (
    <section aria-label="Most frequent values">
      <h3>Most frequent values</h3>
      <ul class="glance-values">
        {summary.values.map((value, at) => {
          const rows = filter ? rowsForValue(summary, value.cell, false) : null;
          const others = filter ? rowsForValue(summary, value.cell, true) : null;
          return (
            <li key={at}>
              <button type="button" class="glance-value" disabled={!rows} onClick={() => rows && filter?.(rows)}>
                <span class="glance-share" style={{ width: `${(100 * Math.min(value.rows, most)) / most}%` }} />
                <span class="glance-text">{shownText(value.cell)}</span>
                <span class="glance-count">
                  {about(summary, "values")}
                  {whole(value.rows)} · {share(value.rows, summary.rows)}
                </span>
              </button>
              {others && (
                <button
                  type="button"
                  class="glance-not"
                  aria-label={`Filter out ${shownText(value.cell)}`}
                  title={`Filter out ${shownText(value.cell)}`}
                  onClick={() => filter?.(others)}
                >
                  ≠
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** Columns at a glance: a card above each column in view, drawn small. */

import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { GridController } from "../grid/controller.ts";
import type { Placed } from "../grid/geometry.ts";
import type { Summarized } from "../messages.ts";
import { asFailure } from "../ui/controls.tsx";
import { about, sentence, share, shownText } from "./figures.ts";
import type { Glance } from "../grid/summaries.ts";

const MOST_VALUES = 3;

export function GlanceStrip({ grid, show }: { grid: GridController; show: (column: string) => void }) {
  const track = useRef<HTMLDivElement>(null);
  const { first, last } = grid.seen.value;
  const { summaries } = grid;
  const version = summaries.version.value;
  const { all, pinned, pinnedWidth } = grid.view.places;
  const fixed = all.slice(0, pinned);
  const free = all.slice(Math.max(pinned, first), last + 1);
  useEffect(() => {
    summaries.want([...fixed, ...free].map((placed) => placed.name));
  }, [grid.seen.value, version]);
  useEffect(() => () => summaries.close(), [summaries]);
  useSignalEffect(() => {
    if (track.current) track.current.style.transform = `translateX(${-grid.scrolled.value}px)`;
  });
  const card = (placed: Placed) => (
    <Card key={placed.name} placed={placed} glance={summaries.of(placed.name)} show={show} />
  );
  return (
    <section class="glance" aria-label="Columns at a glance">
      <div class="glance-track" ref={track}>{free.map(card)}</div>
      <div class="glance-fixed" style={{ width: `${pinnedWidth}px` }}>{fixed.map(card)}</div>
    </section>
  );
}

function Card({ placed, glance, show }: {
  placed: Placed;
  glance: Glance | undefined;
  show: (column: string) => void;
}) {
  const { name, left, width } = placed;
  const failed = glance && "failed" in glance ? asFailure(glance.failed).message : "";
  const said = !glance ? "loading" : "summary" in glance ? sentence(glance.summary) : failed;
  return (
    <button
      type="button"
      class="glance-card"
      style={{ left: `${left}px`, width: `${width}px` }}
      title={`${name}: ${said}`}
      onClick={() => show(name)}
    >
      <span class="unseen">{`${name} at a glance: ${said}`}</span>
      {!glance && <span class="glance-wait" aria-hidden="true" />}
      {failed && <span class="glance-why" aria-hidden="true">{failed}</span>}
      {glance && "summary" in glance && <Drawn summary={glance.summary} />}
    </button>
  );
}

/** A histogram over the extremes, or the most frequent values over their shares; the card's name says it all. */
function Drawn({ summary }: { summary: Summarized }) {
  const { bars, values, rows, missing, minimum, maximum } = summary;
  if (missing !== null && missing === rows) return <span class="glance-why" aria-hidden="true">{rows ? "no values" : "no rows"}</span>;
  if (bars.length > 1) {
    return (
      <>
        <Histogram summary={summary} />
        <span class="glance-ends" aria-hidden="true">
          <span>{about(summary, "minimum")}{shownText(minimum)}</span>
          <span>{about(summary, "maximum")}{shownText(maximum)}</span>
        </span>
      </>
    );
  }
  if (!values.length) return <span class="glance-why" aria-hidden="true">{sentence(summary)}</span>;
  const most = Math.max(1, rows);
  return (
    <>
      {values.slice(0, MOST_VALUES).map((value) => (
        <span class="glance-value" aria-hidden="true" key={shownText(value.cell)}>
          <span class="glance-share" style={{ width: `${(100 * Math.min(value.rows, most)) / most}%` }} />
          <span class="glance-text">{shownText(value.cell)}</span>
          <span class="glance-count">{about(summary, "values")}{share(value.rows, rows)}</span>
        </span>
      ))}
    </>
  );
}

function Histogram({ summary: { bars } }: { summary: Summarized }) {
  const most = Math.max(1, ...bars.map((bar) => bar.rows));
  return (
    <svg class="glance-bars" viewBox={`0 0 ${bars.length * 10} 100`} preserveAspectRatio="none" aria-hidden="true">
      {bars.map((bar, at) => {
        const height = bar.rows ? Math.max(4, (100 * bar.rows) / most) : 0;
        return <rect key={at} x={at * 10 + 1} width="8" y={100 - height} height={height} />;
      })}
    </svg>
  );
}

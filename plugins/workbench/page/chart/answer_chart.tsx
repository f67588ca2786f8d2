/** A table of an answer as a chart: bars for groups; bars or a line for times. */

import { useMemo, useState } from "preact/hooks";
import type { PageAnswer } from "../messages.ts";
import { Button } from "../ui/controls.tsx";
import { whole } from "../ui/figures.ts";
import { openMenu } from "../ui/menu.tsx";
import { line } from "../wire/cells.ts";
import { markText } from "./bars.ts";
import { type Drawing, type Panel, type Point, drawingOf, figuresOf, leftOut, ticksOf } from "./series.ts";

export function AnswerChart({ page, label }: { page: PageAnswer; label: string }) {
  const figures = useMemo(() => figuresOf(page), [page]);
  const [chosen, choose] = useState("");
  const figure = figures.includes(chosen) ? chosen : figures[0];
  const drawing = useMemo(() => drawingOf(page, figure), [page, figure]);
  const rest = leftOut(drawing);
  const menu = (event: MouseEvent) =>
    openMenu(
      "Figure of the chart",
      figures.map((name) => ({ label: line(name), checked: name === figure, run: () => choose(name) })),
      (event.currentTarget as Element).getBoundingClientRect(),
    );
  return (
    <section class="answer-chart" aria-label={label}>
      <p class="answer-chart-line">
        {figures.length > 1
          ? <Button icon="down" label={line(figure)} title="Choose the figure" tone="quiet" onClick={menu} />
          : <strong>{line(figure)}</strong>}
        <span class="muted">by {line(drawing.by)}{drawing.overTime ? ", in UTC" : ""}</span>
      </p>
      {drawing.panels.map((panel) => (
        <section key={panel.title} class="answer-panel" aria-label={panel.title || undefined}>
          {drawing.overTime ? <Times drawing={drawing} panel={panel} /> : <Groups drawing={drawing} panel={panel} />}
        </section>
      ))}
      {!drawing.panels.length && <p class="muted">There is nothing to draw.</p>}
      {rest && <p class="answer-chart-rest" role="note">Left out of the chart: {rest}. The table has all rows of the answer.</p>}
    </section>
  );
}

/** Where zero is, and how far a value is from it, as shares of the whole. */
function scaleOf({ least, most }: Drawing): { zero: number; share: (value: number) => number } {
  const [low, high] = [Math.min(0, least), Math.max(0, most)];
  const span = high - low || 1;
  return { zero: -low / span, share: (value) => Math.abs(value) / span };
}

const percent = (share: number) => `${100 * share}%`;

/** Groups as bars, each with its name and its exact figure. */
function Groups({ drawing, panel }: { drawing: Drawing; panel: Panel }) {
  const { zero, share } = scaleOf(drawing);
  return (
    <>
      {panel.title && <h3>{panel.title}</h3>}
      <ul class="group-bars">
        {panel.points.map(({ label, value, text }, number) => (
          <li key={number}>
            <span class="group-name" title={label}>{label}</span>
            <span class="group-track" aria-hidden="true">
              <span style={{ left: percent(value < 0 ? zero - share(value) : zero), width: percent(share(value)) }} />
            </span>
            <span class="group-figure">{figureText(text)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function figureText(text: string): string {
  return /^-?\d+$/.test(text) ? whole(text) : text;
}

const UNEVEN = 1.12; // months and years differ by as much

/** Where times stand, from 0 to 1, and how wide a bar is: to the next one, unless some are missing between them. */
function placesOf(points: readonly Point[]): { at: (point: Point) => number; width: (number: number) => number; first: number; last: number } {
  const [first, final] = [points[0].at, points[points.length - 1].at];
  const gaps = points.slice(1).map(({ at }, number) => at - points[number].at).filter((gap) => gap > 0);
  const gap = gaps.length ? Math.min(...gaps) : 1;
  const last = final + gap;
  const span = last - first;
  const width = (number: number) => {
    const next = (points[number + 1]?.at ?? last) - points[number].at;
    return (next > 0 && next <= gap * UNEVEN ? next : gap) / span;
  };
  return { at: ({ at }) => (at - first) / span, width, first, last };
}

/** Times in their order; the arrows go from one to the next, and the line above says what is pointed at. */
function Times({ drawing, panel }: { drawing: Drawing; panel: Panel }) {
  const { points } = panel;
  const [marked, mark] = useState<number | null>(null);
  const places = placesOf(points);
  const bars = drawing.shape === "bars";
  const lineShare = points.length > 1 ? places.at(points[points.length - 1]) : 1; // a line ends with its last time
  const spoken = (number: number) => `${points[number].label}: ${figureText(points[number].text)}`;
  const now = marked !== null && marked < points.length ? marked : null;
  const move = ({ currentTarget, clientX }: PointerEvent & { currentTarget: Element }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    const share = (clientX - left) / width * (bars ? 1 : lineShare);
    const distance = (number: number) => Math.abs(places.at(points[number]) + (bars ? places.width(number) / 2 : 0) - share);
    mark(points.reduce((near, _, number) => (distance(number) < distance(near) ? number : near), 0));
  };
  const key = (event: KeyboardEvent) => {
    const at = now ?? -1;
    const next = { ArrowLeft: at < 0 ? points.length - 1 : at - 1, ArrowRight: at + 1, Home: 0, End: points.length - 1 }[event.key];
    if (event.key === "Escape" && now !== null) mark(null);
    else if (next !== undefined) mark(Math.max(0, Math.min(points.length - 1, next)));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const [least, most] = bars ? [0, drawing.most] : [drawing.least, drawing.most];
  const ticks = ticksOf(places.first, bars ? places.last : points[points.length - 1].at);
  return (
    <>
      <p class="answer-panel-line">
        {panel.title && <strong title={panel.title}>{panel.title}</strong>}
        <span class="answer-chart-told">
          {now === null ? `${points.length === 1 ? spoken(0) : `${figureText(String(least))} to ${figureText(String(most))}`}` : spoken(now)}
        </span>
      </p>
      <div
        class="times"
        role="slider"
        tabIndex={0}
        aria-label={`${drawing.figure}${panel.title ? ` of ${panel.title}` : ""}: arrows go from time to time`}
        aria-valuemin={1}
        aria-valuemax={points.length}
        aria-valuenow={(now ?? 0) + 1}
        aria-valuetext={spoken(now ?? 0)}
        onPointerMove={move}
        onPointerDown={move}
        onPointerLeave={(event) => document.activeElement !== event.currentTarget && mark(null)}
        onBlur={() => mark(null)}
        onKeyDown={key}
      >
        {bars
          ? points.map((point, number) => (
              <span
                key={number}
                class={number === now ? "times-bar marked" : "times-bar"}
                style={{ left: percent(places.at(point)), width: percent(places.width(number)), height: percent(point.value ? Math.max(0.03, point.value / (most || 1)) : 0) }}
              />
            ))
          : <Line drawing={drawing} points={points} marked={now} />}
      </div>
      <div class="times-scale" aria-hidden="true">
        {ticks.map(({ at, when }, number) => (
          <span key={number} style={{ left: percent(at) }}>{markText(when, ticks, number)}</span>
        ))}
      </div>
    </>
  );
}

const HEIGHT = 100;

function Line({ drawing: { least, most }, points, marked }: { drawing: Drawing; points: readonly Point[]; marked: number | null }) {
  const { at } = placesOf(points);
  const last = at(points[points.length - 1]) || 1;
  const x = (point: Point) => (1_000 * at(point)) / last;
  const y = ({ value }: Point) => HEIGHT - (HEIGHT * (value - least)) / (most - least || 1);
  const place = marked === null ? null : points[marked];
  return (
    <>
      <svg viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <polyline points={points.map((point) => `${x(point).toFixed(1)},${y(point).toFixed(1)}`).join(" ")} />
      </svg>
      {(place || points.length === 1) && (
        <span class="times-dot" style={{ left: `${x(place ?? points[0]) / 10}%`, top: `${y(place ?? points[0])}%` }} />
      )}
    </>
  );
}

/** Summaries of the columns in view: asked for a few at a time, kept until other rows are shown. */

import { signal } from "@preact/signals";
import type { Summarized } from "../messages.ts";

export type Glance = { readonly summary: Summarized } | { readonly failed: unknown };

const AT_ONCE = 2;
const PAUSE = 150;
const MOST_KEPT = 400;

export class Summaries {
  /** Counts up when a summary has arrived, or all are forgotten. */
  readonly version = signal(0);
  readonly #ask: (column: string, signal: AbortSignal) => Promise<Summarized>;
  readonly #pause: number;
  readonly #kept = new Map<string, Glance>();
  /** Those of the same rows as they were before, for as long as there are no others. */
  #earlier: ReadonlyMap<string, Glance> = new Map();
  readonly #running = new Map<string, AbortController>();
  #waiting: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ask: (column: string, signal: AbortSignal) => Promise<Summarized>, pause = PAUSE) {
    this.#ask = ask;
    this.#pause = pause;
  }

  /** The summary of a column, or why there is none; undefined while it is not here. */
  of(column: string): Glance | undefined {
    return this.#kept.get(column) ?? this.#earlier.get(column);
  }

  /** Ask for these columns once the view has rested, in this order; requests for others are ended. */
  want(columns: readonly string[]): void {
    const wanted = new Set(columns);
    for (const [column, stop] of this.#running) if (!wanted.has(column)) stop.abort();
    this.#waiting = columns.filter((column) => !this.#kept.has(column));
    clearTimeout(this.#timer);
    if (this.#waiting.length) this.#timer = setTimeout(() => this.#next(), this.#pause);
  }

  /** Forget all: other rows are shown. */
  reset(): void {
    this.close();
    this.#kept.clear();
    this.#earlier = new Map();
    this.version.value += 1;
  }

  /** Ask again for what is wanted: the same rows were read anew. */
  renew(): void {
    const earlier = new Map([...this.#earlier, ...this.#kept]);
    this.reset();
    this.#earlier = earlier;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#waiting = [];
    for (const stop of this.#running.values()) stop.abort();
    this.#running.clear();
  }

  #next(): void {
    while (this.#running.size < AT_ONCE) {
      const column = this.#waiting.shift();
      if (column === undefined) return;
      if (!this.#running.has(column)) void this.#fetch(column);
    }
  }

  async #fetch(column: string): Promise<void> {
    const stop = new AbortController();
    this.#running.set(column, stop);
    let found: Glance;
    try {
      found = { summary: await this.#ask(column, stop.signal) };
    } catch (failed) {
      found = { failed };
    }
    if (this.#running.get(column) === stop) this.#running.delete(column);
    if (!stop.signal.aborted) {
      if (this.#kept.size >= MOST_KEPT) this.#kept.clear();
      this.#kept.set(column, found);
      this.version.value += 1;
    }
    this.#next();
  }
}

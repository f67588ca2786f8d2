/** The columns that place rows in time, and what a person chose of the chart over one of them. */

import { useEffect, useState } from "preact/hooks";
import type { Column } from "../messages.ts";
import { recall, remember } from "../state/preferences.ts";

/** Columns of instants or days, those first that the rows stand in by their nature. */
export function timeColumns(columns: readonly Column[]): Column[] {
  const timed = columns.filter(({ kind, repeated, arrays }) => (kind === "timestamp" || kind === "date") && !repeated && !arrays?.length);
  const rank = (column: Column) => (column.role === "time" ? 0 : isSeries(column) ? 1 : column.name.includes(".") ? 3 : 2);
  return timed.sort((one, other) => rank(one) - rank(other));
}

/** Whether rows are events or samples: then the chart is there from the beginning. */
function isSeries({ role }: Column): boolean {
  return role === "time" || role === "key";
}

interface Choice {
  readonly shown?: boolean;
  readonly column?: string;
}

export interface ChartChoice {
  /** All columns that a chart can be over; none while nothing is known of them. */
  readonly all: readonly Column[];
  /** The one that it is over; undefined if there is no chart. */
  readonly column: Column | undefined;
  choose(column: string): void;
  flip(): void;
}

/** Which chart an object has, as it is remembered for the object. */
export function useChartChoice(connection: string, object: string, columns: readonly Column[]): ChartChoice {
  const key = `chart/${connection}/${object}`;
  const [choice, setChoice] = useState<Choice | null>(null);
  useEffect(() => {
    let left = false;
    recall<Choice>(key).then((kept) => left || setChoice(kept ?? {}));
    return () => {
      left = true;
    };
  }, [key]);
  const all = choice ? timeColumns(columns) : [];
  const first = all.find(({ name }) => name === choice?.column) ?? all[0];
  const shown = !!first && (choice?.shown ?? isSeries(first));
  const keep = (part: Choice) => {
    const next = { ...choice, ...part };
    setChoice(next);
    remember(key, next);
  };
  return { all, column: shown ? first : undefined, choose: (column) => keep({ column, shown: true }), flip: () => keep({ shown: !shown }) };
}

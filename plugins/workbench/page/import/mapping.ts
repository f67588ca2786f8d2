/** Which column of the file becomes which column of the object. */

import type { ImportPreviewed, ProposedColumn } from "../messages.ts";

export interface Mapping {
  /** New names of the file's columns; an empty one leaves the column out. */
  readonly renamed: Readonly<Record<string, string>>;
  /** Types that a person chose, by the new names. */
  readonly types: Readonly<Record<string, string>>;
  /** Readings that a person chose, by the file's columns. */
  readonly readings: Readonly<Record<string, string>>;
}

export const PLAIN = "plain";
export const UNMAPPED: Mapping = { renamed: {}, types: {}, readings: {} };

/** How the fields of the file are read: as a person chose, else as the first rows propose and the view shows. */
export function readingsOf({ names, proposal }: ImportPreviewed, { readings }: Mapping): Record<string, string> {
  const proposed = (proposal?.columns ?? []).filter(({ reading, doubt }) => reading || doubt);
  const chosen = Object.entries(readings).filter(([name]) => names.includes(name));
  return { ...Object.fromEntries(proposed.map(({ column, reading }) => [column, reading || PLAIN])), ...Object.fromEntries(chosen) };
}

/** Whether a person has to choose how a column is read: nothing settles it, and its values are to be no texts. */
export function undecided({ doubt, consent, source }: ProposedColumn): boolean {
  return source !== "rows" && !!doubt && !consent;
}

/** The reading that a person chose for a column of the file. */
export function chosenReading(name: string, { readings }: Mapping): string | undefined {
  return Object.hasOwn(readings, name) ? readings[name] : undefined;
}

/** The type that a person chose for a column of the object. */
export function chosenType(place: string, { types }: Mapping): string | undefined {
  return Object.hasOwn(types, place) ? types[place] : undefined;
}

/** What a column of the file is called in the object. */
export function placeOf(name: string, { renamed }: Mapping): string {
  return Object.hasOwn(renamed, name) ? renamed[name] : name;
}

/** Give a column of the file another name in the object; a chosen type goes with it. */
export function renamedTo(mapping: Mapping, name: string, place: string): Mapping {
  const before = placeOf(name, mapping), type = chosenType(before, mapping);
  const { [before]: _type, ...types } = mapping.types;
  const { [name]: _, ...renamed } = mapping.renamed;
  return {
    renamed: place === name ? renamed : { ...renamed, [name]: place },
    types: type && place ? { ...types, [place]: type } : types,
    readings: mapping.readings,
  };
}

/** Columns of the file that an object which exists has no place for. */
export function unplaced(preview: ImportPreviewed, mapping: Mapping, rowId: string | null): string[] {
  if (!preview.exists) return [];
  const known = new Set(preview.columns.map(({ name }) => name));
  const has = (place: string) => place.split(".").some((_, at, parts) => known.has(parts.slice(0, parts.length - at).join(".")));
  return preview.names.filter((name) => {
    const place = placeOf(name, mapping);
    return place !== "" && name !== rowId && !has(place);
  });
}

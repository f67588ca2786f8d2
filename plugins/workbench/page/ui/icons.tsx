/** Icons drawn as lines on a grid of 16; decoration only, the control beside them carries the name. */

const PATHS = {
  add: "M8 3v10M3 8h10",
  back: "M10 3 5 8l5 5",
  bars: "M2.500 13.500h11M4.500 13.500v-4M8 13.500v-10M11.500 13.500v-7",
  chart: "M2.500 13.500h11M3 10.500l3-4 3 2.500 4-5.500",
  check: "M3 8.5 6.5 12 13 4.5",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.500V8l2.500 1.500",
  close: "M4 4l8 8M12 4l-8 8",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  console: "M3 4l4 4-4 4M8.5 12H13",
  copy: "M5.5 5.5h8v8h-8zM3 10.5V2.5h8",
  database: "M2.5 4c0-1.2 2.5-2 5.500-2s5.500.8 5.500 2-2.500 2-5.500 2-5.500-.8-5.500-2zM2.500 4v8c0 1.200 2.500 2 5.500 2s5.500-.8 5.500-2V4M2.500 8c0 1.200 2.500 2 5.500 2s5.500-.8 5.500-2",
  down: "M4 6l4 4 4-4",
  edit: "M3 13l.7-3L10.500 3.200l2.300 2.300L6 12.300z",
  export: "M8 2.500v7M5 7l3 3 3-3M3 13h10",
  filter: "M2.500 3.500h11L9.500 8.500v4l-3 1v-5z",
  import: "M8 9.500v-7M5 5l3-3 3 3M3 13h10",
  key: "M9.500 6.500L3 13h2.500v-2H7.500l1.500-1.500M11 8a2.800 2.800 0 1 0-2.800-2.800A2.800 2.800 0 0 0 11 8z",
  lock: "M4 7.500h8v6H4zM5.500 7.500V5.500a2.500 2.500 0 0 1 5 0v2",
  menu: "M2.500 4h11M2.500 8h11M2.500 12h11",
  more: "M2.500 8h1.500M7.250 8h1.500M12 8h1.500",
  moon: "M13 9.500A5.500 5.500 0 1 1 6.500 3a4.500 4.500 0 0 0 6.500 6.500z",
  pane: "M2.500 3h11v10h-11zM9.500 3v10",
  play: "M4.500 3l8 5-8 5z",
  refresh: "M13 4.500V7.500H10M13 7.500A5.300 5.300 0 1 0 12 11.500",
  remove: "M3 4.500h10M6.500 4.500v-2h3v2M4.500 4.500l.7 9h5.600l.7-9",
  right: "M6 4l4 4-4 4",
  rows: "M2.500 4h6M2.500 8h6M2.500 12h6M12 3v10M10 5l2-2 2 2M10 11l2 2 2-2",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.700 10.700L14 14",
  shield: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
  shop: "M3 6.500v7h10v-7M2 6.500l1.500-4h9l1.500 4zM6.500 13.500v-4h3v4",
  sum: "M12 3.500V2.500H4l4 5.500-4 5.500h8v-1",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1",
  table: "M2.500 3h11v10h-11zM2.500 6.300h11M2.500 9.700h11M6.500 6.300V13",
  redo: "M13 6.500H6.500a3.500 3.500 0 0 0 0 7H10M10 3.500l3 3-3 3",
  undo: "M3 6.500h6.500a3.500 3.500 0 0 1 0 7H6M6 3.500l-3 3 3 3",
  unlock: "M4 7.500h8v6H4zM5.500 7.500V5.500a2.500 2.500 0 0 1 4.800-1",
  warning: "M8 2.500l6 11H2zM8 6.500v3.500M8 11.500v.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

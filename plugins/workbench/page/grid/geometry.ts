/** Where rows and columns lie: arithmetic without a document. */

/** How high a row is; a tall one has room for three lines. */
export const ROW_HEIGHTS = { compact: 22, normal: 28, tall: 60 } as const;
export type RowHeight = keyof typeof ROW_HEIGHTS;

export const ROW_HEIGHT = ROW_HEIGHTS.normal;
export const HEAD_HEIGHT = 30;

/** Browsers stop laying out near 33 million pixels; above this the scroll position is scaled. */
export const MAX_EXTENT = 15_000_000;

/** Rows are placed relative to a multiple of this, because a transform has only 24 bits of precision. */
const ORIGIN_STEP = 4_096;

/** The room for row numbers: at least so many pixels, and so many for each sign. */
export const GUTTER = 56;
const SIGN = 7;
const AROUND = 12;

/** The width in which the numbers of so many rows are whole. */
export function gutterOf(rows: number): number {
  return Math.max(GUTTER, rows.toLocaleString("en").length * SIGN + AROUND);
}

export interface Placed {
  readonly name: string;
  readonly left: number;
  readonly width: number;
  readonly pinned: boolean;
}

/** The visible columns in order, pinned ones first, with their places in pixels. */
export class Places {
  readonly all: readonly Placed[];
  readonly pinned: number;
  readonly pinnedWidth: number;
  readonly width: number;

  constructor(columns: readonly { name: string; width: number; pinned: boolean }[], gutter: number) {
    const ordered = [...columns.filter((c) => c.pinned), ...columns.filter((c) => !c.pinned)];
    let left = gutter;
    this.all = ordered.map(({ name, width, pinned }) => {
      const placed = { name, left, width, pinned };
      left += width;
      return placed;
    });
    this.pinned = ordered.filter((c) => c.pinned).length;
    this.pinnedWidth = this.pinned ? this.all[this.pinned - 1].left + this.all[this.pinned - 1].width : gutter;
    this.width = left;
  }

  /** The first and last column that is not pinned and that a view at `x` shows; last < first if there is none. */
  range(x: number, view: number): [number, number] {
    const [from, to] = [x + this.pinnedWidth, x + view];
    const first = Math.max(this.pinned, this.at(from));
    let last = first - 1;
    while (last + 1 < this.all.length && this.all[last + 1].left < to) last += 1;
    return [first, last];
  }

  /** The number of the column at a distance from the left edge of all columns; the nearest one outside. */
  at(distance: number): number {
    let [low, high] = [0, this.all.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.all[middle].left <= distance) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The greatest number of unpinned columns that a view can touch: how many cells a row needs. */
  most(view: number): number {
    const room = Math.max(0, view - this.pinnedWidth);
    let [most, first] = [0, this.pinned];
    for (let last = this.pinned; last < this.all.length; last += 1) {
      while (this.all[first].left + this.all[first].width <= this.all[last].left - room) first += 1;
      most = Math.max(most, last - first + 1);
    }
    return most;
  }

  /** A range grown to so many columns, so that as many cells are drawn at each place; to the right if it can be. */
  grown([first, last]: readonly [number, number], count: number): [number, number] {
    const end = Math.min(this.all.length, Math.max(last + 1, first + count));
    return [Math.max(this.pinned, Math.min(first, end - count)), end - 1];
  }

  /** The scroll position that shows a column wholly, nearest to `x`. */
  reveal(column: number, x: number, view: number): number {
    const { left, width, pinned } = this.all[column];
    if (pinned) return x;
    if (left < x + this.pinnedWidth) return left - this.pinnedWidth;
    return left + width > x + view ? Math.min(left - this.pinnedWidth, left + width - view) : x;
  }
}

/** The vertical way: any number of rows behind a scroll bar of bounded length. */
export class Rows {
  readonly count: number;
  readonly view: number;
  /** The height of one row. */
  readonly step: number;

  constructor(count: number, view: number, step: number = ROW_HEIGHT) {
    this.count = count;
    this.step = step;
    this.view = Math.max(0, view);
  }

  /** The height of all rows. */
  get height(): number {
    return this.count * this.step;
  }

  /** The height that the scroll bar stands for. */
  get extent(): number {
    return Math.min(this.height, MAX_EXTENT);
  }

  /** The last position. */
  get end(): number {
    return Math.max(0, this.height - this.view);
  }

  /** Pixels of rows for each pixel of the scroll bar; 1 unless the rows are higher than `MAX_EXTENT`. */
  get scale(): number {
    return this.extent > this.view ? this.end / (this.extent - this.view) : 1;
  }

  clamp(y: number): number {
    return Math.max(0, Math.min(this.end, y));
  }

  /** The first and last row that a view at `y` shows; last < first if there are none. */
  range(y: number): [number, number] {
    return [Math.floor(y / this.step), Math.min(this.count - 1, Math.floor((y + this.view - 1) / this.step))];
  }

  /** The position that shows a row wholly, nearest to `y`. */
  reveal(row: number, y: number): number {
    const top = row * this.step;
    if (top < y) return top;
    return top + this.step > y + this.view ? top + this.step - this.view : y;
  }

  /** The height that rows drawn relative to one origin can take. */
  get reach(): number {
    return Math.min(this.height, (ORIGIN_STEP + 1) * this.step + this.view);
  }

  /** The row that places near `y` are relative to. */
  origin(y: number): number {
    return Math.floor(y / (this.step * ORIGIN_STEP)) * ORIGIN_STEP;
  }
}

/** The active cell and the rectangle that grows from it. */

export interface Place {
  readonly row: number;
  readonly column: number;
}

export interface Rectangle {
  readonly top: number;
  readonly left: number;
  readonly bottom: number;
  readonly right: number;
}

/** Row -1 is the head of the columns. */
export const HEAD = -1;

export class Selection {
  readonly anchor: Place;
  readonly active: Place;
  /** Whole rows are selected, by their numbers. */
  readonly rows: boolean;

  constructor(anchor: Place, active: Place = anchor, rows = false) {
    this.anchor = anchor;
    this.active = active;
    this.rows = rows;
  }

  /** The selected cells among so many columns; null in the head. */
  rectangle(columns: number): Rectangle | null {
    if (this.active.row === HEAD || !columns) return null;
    const [one, other] = [this.anchor, this.active];
    return {
      top: Math.max(0, Math.min(one.row, other.row)),
      bottom: Math.max(one.row, other.row),
      left: this.rows ? 0 : Math.min(one.column, other.column),
      right: this.rows ? columns - 1 : Math.max(one.column, other.column),
    };
  }

  get single(): boolean {
    return !this.rows && this.anchor.row === this.active.row && this.anchor.column === this.active.column;
  }

  move(to: Place, extend: boolean): Selection {
    return extend && to.row !== HEAD && this.anchor.row !== HEAD
      ? new Selection(this.anchor, to, this.rows)
      : new Selection(to);
  }
}

export function within(area: Rectangle | null, row: number, column: number): boolean {
  return !!area && row >= area.top && row <= area.bottom && column >= area.left && column <= area.right;
}

/** Where a key leads, or null if the key does not move. `page` is the number of rows in view. */
export function step(key: string, from: Place, size: { rows: number; columns: number; page: number }, far: boolean) {
  const last = { row: size.rows - 1, column: size.columns - 1 };
  const move = (row: number, column: number): Place => ({
    row: Math.max(HEAD, Math.min(last.row, row)),
    column: Math.max(0, Math.min(last.column, column)),
  });
  switch (key) {
    case "ArrowUp":
      return far ? move(Math.min(0, from.row), from.column) : move(from.row - 1, from.column);
    case "ArrowDown":
      return far ? move(last.row, from.column) : move(from.row + 1, from.column);
    case "ArrowLeft":
      return far ? move(from.row, 0) : move(from.row, from.column - 1);
    case "ArrowRight":
      return far ? move(from.row, last.column) : move(from.row, from.column + 1);
    case "PageUp":
      return move(Math.max(0, from.row - size.page), from.column);
    case "PageDown":
      return move(from.row + size.page, from.column);
    case "Home":
      return far ? move(0, 0) : move(from.row, 0);
    case "End":
      return far ? move(last.row, last.column) : move(from.row, last.column);
    default:
      return null;
  }
}

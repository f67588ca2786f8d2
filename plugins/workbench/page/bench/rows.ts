/** Rows of both sides of the benchmark: values are made when they are read, so that neither side pays for memory. */

export const ROWS = 100_000;
export const COLUMNS = 300;

export class Row {
  readonly at: number;

  constructor(at: number) {
    this.at = at;
  }
}

export function value(row: number, column: number): string | number {
  return column % 3 ? `r${row}c${column}` : row * COLUMNS + column;
}

for (let column = 0; column < COLUMNS; column += 1) {
  Object.defineProperty(Row.prototype, `c${column}`, {
    enumerable: true,
    get(this: Row) {
      return value(this.at, column);
    },
  });
}

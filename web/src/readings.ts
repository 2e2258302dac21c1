// What nodes held, in order of time. A thousand nodes may have a million series: those of one node are told apart when they are asked for.

import type { Table } from "./data";

export interface Series {
  name: string;
  node: number;
  part: number;
  rows: Uint32Array;
}

export class Readings {
  /** The names of all series, sorted. */
  readonly names: string[];
  /** Rows by name and then by node; the groups' first places are in `from`. */
  private readonly rows: Uint32Array;
  private readonly from: Uint32Array;
  private readonly apart = new Map<number, Series[]>();
  private readonly at: ArrayLike<number>;

  constructor(readonly table: Table, private readonly nodes: number) {
    const name = table.column("name");
    this.at = table.column("at_ns").values;
    const [codes, holders] = [name.values, table.column("node").values];
    this.from = new Uint32Array(name.words.length * nodes + 1);
    // Counted first, then put into place: two passes and no object for a row.
    const group = (row: number) => codes[row] * nodes + holders[row];
    for (let row = 0; row < table.rows; row++) if (holders[row] < nodes) this.from[group(row) + 1]++;
    for (let place = 1; place < this.from.length; place++) this.from[place] += this.from[place - 1];
    this.rows = new Uint32Array(this.from[this.from.length - 1]);
    const next = this.from.slice();
    for (let row = 0; row < table.rows; row++) if (holders[row] < nodes) this.rows[next[group(row)]++] = row;
    this.names = name.words.filter((_, code) => this.from[(code + 1) * nodes] > this.from[code * nodes]).sort();
  }

  /** The series of this name that a node has, by their parts. */
  of(name: string, node: number): Series[] {
    const code = this.code(name);
    if (code < 0 || node < 0 || node >= this.nodes) return [];
    const group = code * this.nodes + node;
    const known = this.apart.get(group);
    if (known) return known;
    const part = this.table.column("part");
    const byPart = new Map<number, number[]>();
    for (const row of this.rows.subarray(this.from[group], this.from[group + 1])) {
      const own = byPart.get(part.at(row));
      if (own) own.push(row);
      else byPart.set(part.at(row), [row]);
    }
    const series = [...byPart].sort(([a], [b]) => a - b).map(([of, rows]) => ({ name, node, part: of, rows: Uint32Array.from(rows) }));
    this.apart.set(group, series);
    return series;
  }

  /** The first node that has a reading of this name; -1 if none has. */
  firstWith(name: string): number {
    const code = this.code(name);
    for (let node = 0; code >= 0 && node < this.nodes; node++) {
      if (this.from[code * this.nodes + node + 1] > this.from[code * this.nodes + node]) return node;
    }
    return -1;
  }

  /** The row of a series that holds at a moment; -1 before the first. */
  rowAt(series: Series, at: number): number {
    const next = bound(series.rows, (row) => this.at[row] <= at);
    return next === 0 ? -1 : series.rows[next - 1];
  }

  /** All nodes' values of this name. */
  moment(name: string): Moment {
    const code = this.code(name);
    const rows = code < 0 ? new Uint32Array(0) : this.rows.slice(this.from[code * this.nodes], this.from[(code + 1) * this.nodes]);
    // By node as they stand; rows of the table are in order of time.
    return new Moment(this.table, rows.sort());
  }

  private code(name: string): number {
    return this.table.column("name").words.indexOf(name);
  }
}

/** The values that all nodes hold at a moment, as a grid of nodes and parts. Moving on or back applies only what changes between. */
export class Moment {
  readonly nodes: number[];
  readonly parts: number[];
  /** By node and then by part; NaN where there is none yet. */
  readonly values: Float32Array;
  /** Whether there ever is one. */
  readonly known: Uint8Array;
  /** The largest value at any time. */
  readonly high: number;
  /** For each row its cell, and the place of the row whose value it replaces; -1 for the first of a cell. */
  private readonly cells: Uint32Array;
  private readonly before: Int32Array;
  private next = 0;

  /** Cells that changed since so many readings were applied, some of them more than once. */
  changedSince(applied: number): Uint32Array {
    return this.cells.subarray(Math.min(applied, this.next), Math.max(applied, this.next));
  }

  /** How many readings the values come from: another number means other values. */
  get applied(): number {
    return this.next;
  }

  constructor(private readonly table: Table, private readonly rows: Uint32Array) {
    const [node, part] = [table.column("node"), table.column("part")];
    const value = table.column("value").values;
    const places = (of: (row: number) => number) => {
      const all = new Set<number>();
      for (const row of rows) all.add(of(row));
      const sorted = [...all].sort((a, b) => a - b);
      return { sorted, place: new Map(sorted.map((one, place) => [one, place])) };
    };
    const [down, across] = [places((row) => node.at(row)), places((row) => part.at(row))];
    this.nodes = down.sorted;
    this.parts = across.sorted;
    this.values = new Float32Array(this.nodes.length * this.parts.length).fill(NaN);
    this.known = new Uint8Array(this.values.length);
    this.cells = new Uint32Array(rows.length);
    this.before = new Int32Array(rows.length);
    const last = new Int32Array(this.values.length).fill(-1);
    let high = 0;
    rows.forEach((row, place) => {
      const cell = down.place.get(node.at(row))! * this.parts.length + across.place.get(part.at(row))!;
      this.cells[place] = cell;
      this.before[place] = last[cell];
      last[cell] = place;
      this.known[cell] = 1;
      if (value[row] > high) high = value[row];
    });
    this.high = high;
  }

  /** Makes `values` those of this moment. */
  seek(at: number): void {
    const times = this.table.column("at_ns").values;
    const values = this.table.column("value").values;
    while (this.next > 0 && times[this.rows[this.next - 1]] > at) {
      const before = this.before[--this.next];
      this.values[this.cells[this.next]] = before < 0 ? NaN : values[this.rows[before]];
    }
    for (; this.next < this.rows.length && times[this.rows[this.next]] <= at; this.next++) {
      this.values[this.cells[this.next]] = values[this.rows[this.next]];
    }
  }
}

/** The first place whose row does not satisfy `before`, in a list where those that do come first. */
export function bound(rows: Uint32Array, before: (row: number) => boolean): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(rows[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A run prepared for drawing: for each node its events in order of time, and a coarse picture of them at every scale.

import type { Run } from "./data";

/** What a radio does, as bits: a coarse picture ORs them together. */
export const State = { asleep: 1, overhears: 2, receives: 4, sends: 8, lost: 16, down: 32 } as const;

/** One node's events: rows of the run's tables, sorted by their start. */
export interface Lane {
  sent: Uint32Array;
  heard: Uint32Array;
  /** Pairs of begin and end in ns during which the radio was off; the second list says whether it had crashed. */
  off: Float64Array;
  down: Uint8Array;
  /** For each scale, states of equal stretches of the run; the first is the finest. */
  coarse: Uint8Array[];
}

export interface Series {
  name: string;
  node: number;
  part: number;
  rows: Uint32Array;
}

/** Stretches of the finest coarse picture at least: more than a screen has columns. */
const FINEST = 8192;
/** Octets of all finest pictures together at most: long runs of many events get finer ones, since closer up each event is drawn. */
const PICTURES = 48e6;

export class Model {
  /** Nodes, and interferers after them. */
  readonly nodes: number;
  readonly end: number;
  readonly lanes: Lane[] = [];
  readonly byFrame: { from: Uint32Array; rows: Uint32Array };
  readonly series: Series[];
  readonly lostRows: Uint32Array;
  private readonly seriesOf = new Map<string, Series>();
  private readonly seriesNamed = new Map<string, Series[]>();
  private readonly seriesHeld = new Map<string, Series[]>();
  private readonly received: number;
  private readonly finest: number;

  constructor(readonly run: Run) {
    const { frames, receptions } = run;
    this.nodes = run.about.nodes + run.about.interferers;
    this.end = Math.max(run.about.end_ns, 1);
    this.received = receptions.column("outcome").words.indexOf("received");
    const [events, room] = [receptions.rows / 16, PICTURES / Math.max(1, this.nodes)];
    this.finest = Math.max(FINEST, 2 ** Math.floor(Math.log2(Math.max(1, Math.min(events, room, 1 << 17)))));
    const sent = group(frames.column("node").values, this.nodes);
    const heard = group(receptions.column("node").values, this.nodes);
    const away = this.away();
    for (let node = 0; node < this.nodes; node++) {
      const { off, down } = away[node];
      const lane: Lane = { sent: sent[node], heard: heard[node], off, down, coarse: [] };
      this.lanes.push(lane);
    }
    this.lanes.forEach((lane, node) => this.coarsen(lane, node));
    this.byFrame = this.indexFrames();
    this.series = this.indexReadings();
    this.lostRows = this.findLosses();
  }

  /** What a node or an interferer is called. */
  name(node: number): string {
    const { names, nodes } = this.run.about;
    return names[node] ?? (node < nodes ? `node ${node}` : `interferer ${node - nodes}`);
  }

  /** How many nodes are there at a moment: not switched off, and met before it. */
  presentAt(at: number): number {
    const gone = this.lanes.filter(({ off }) => {
      const pair = off.findIndex((begin, place) => place % 2 === 0 && begin <= at && off[place + 1] >= at);
      return pair >= 0;
    });
    return this.nodes - gone.length;
  }

  isInterferer(node: number): boolean {
    return node >= this.run.about.nodes;
  }

  isReceived(row: number): boolean {
    return this.run.receptions.column("outcome").values[row] === this.received;
  }

  /** Losses that say something: the receiver was there and heard it. Signals too weak to be heard are left out. */
  isNotable(row: number): boolean {
    const why = this.run.receptions.column("outcome").word(row);
    return why !== "received" && why !== "too_weak" && why !== "asleep" && why !== "other_channel" && why !== "down";
  }

  startOf(row: number): number {
    return this.run.receptions.column("start_ns").at(row);
  }

  /** The end of a reception: where its frame ended, or where it was given up. */
  endOf(row: number): number {
    const { frames, receptions } = this.run;
    const frame = receptions.column("frame").at(row);
    const start = receptions.column("start_ns").at(row);
    const known = receptions.column("known_ns").at(row);
    if (known > start || frame < 0) return Math.max(known, start + 1);
    return start + frames.column("airtime_ns").at(frame);
  }

  /** Whether a reception's frame was meant for its receiver. */
  isAddressed(row: number): boolean {
    const frame = this.run.receptions.column("frame").at(row);
    if (frame < 0) return true;
    const to = this.run.frames.column("to").at(frame);
    return to < 0 || to === this.run.receptions.column("node").at(row);
  }

  /** The state bits of a reception. */
  stateOf(row: number): number {
    if (this.isReceived(row)) return this.isAddressed(row) ? State.receives : State.overhears;
    return this.isNotable(row) ? State.lost : 0;
  }

  /** The receptions of a frame. */
  receptionsOf(frame: number): Uint32Array {
    const { from, rows } = this.byFrame;
    return rows.subarray(from[frame], from[frame + 1]);
  }

  find(name: string, node: number, part: number): Series | undefined {
    return this.seriesOf.get(`${name} ${node} ${part}`);
  }

  /** The series of this name: of all nodes, or of one. A thousand nodes may have a million. */
  named(name: string, node?: number): Series[] {
    return (node === undefined ? this.seriesNamed.get(name) : this.seriesHeld.get(`${name} ${node}`)) ?? [];
  }

  /** The names of all series. */
  names(): string[] {
    return [...this.seriesNamed.keys()];
  }

  /** The row of a series that holds at a moment; -1 before the first. */
  rowAt(series: Series, at: number): number {
    const times = this.run.readings.column("at_ns").values;
    const next = bound(series.rows, (row) => times[row] <= at);
    return next === 0 ? -1 : series.rows[next - 1];
  }

  private away(): { off: Float64Array; down: Uint8Array }[] {
    const table = this.run.switches;
    const [at, node, to] = ["at_ns", "node", "to"].map((name) => table.column(name));
    const off: number[][] = Array.from({ length: this.nodes }, () => []);
    const down: number[][] = Array.from({ length: this.nodes }, () => []);
    for (let row = 0; row < table.rows; row++) {
      const own = off[node.at(row)];
      if (!own) continue;
      const open = own.length % 2 === 1;
      if (open) own.push(at.at(row));
      if (to.word(row) !== "on") {
        own.push(at.at(row));
        down[node.at(row)].push(to.word(row) === "down" ? 1 : 0);
      }
    }
    return off.map((own, place) => {
      if (own.length % 2 === 1) own.push(this.end);
      return { off: Float64Array.from(own), down: Uint8Array.from(down[place]) };
    });
  }

  private coarsen(lane: Lane, _node: number): void {
    const finest = new Uint8Array(this.finest);
    const scale = finest.length / this.end;
    const mark = (begin: number, end: number, bits: number) => {
      const first = Math.max(0, Math.floor(begin * scale));
      const last = Math.min(finest.length - 1, Math.floor(end * scale));
      for (let place = first; place <= last; place++) finest[place] |= bits;
    };
    const frames = this.run.frames;
    const [start, airtime] = [frames.column("start_ns"), frames.column("airtime_ns")];
    for (let pair = 0; pair < lane.off.length; pair += 2) {
      mark(lane.off[pair], lane.off[pair + 1], lane.down[pair / 2] ? State.down : State.asleep);
    }
    for (const row of lane.heard) {
      const bits = this.stateOf(row);
      if (bits !== 0) mark(this.startOf(row), this.endOf(row), bits);
    }
    for (const row of lane.sent) mark(start.at(row), start.at(row) + airtime.at(row), State.sends);
    lane.coarse.push(finest);
    for (let count = finest.length / 2; count >= 512; count /= 2) {
      const finer = lane.coarse[lane.coarse.length - 1];
      const coarser = new Uint8Array(count);
      for (let place = 0; place < count; place++) coarser[place] = finer[2 * place] | finer[2 * place + 1];
      lane.coarse.push(coarser);
    }
  }

  private indexFrames(): { from: Uint32Array; rows: Uint32Array } {
    const column = this.run.receptions.column("frame");
    const from = new Uint32Array(this.run.frames.rows + 1);
    const total = this.run.receptions.rows;
    for (let row = 0; row < total; row++) {
      const frame = column.at(row);
      if (frame >= 0) from[frame + 1]++;
    }
    for (let frame = 1; frame < from.length; frame++) from[frame] += from[frame - 1];
    const rows = new Uint32Array(from[from.length - 1]);
    const next = from.slice();
    for (let row = 0; row < total; row++) {
      const frame = column.at(row);
      if (frame >= 0) rows[next[frame]++] = row;
    }
    return { from, rows };
  }

  private indexReadings(): Series[] {
    const table = this.run.readings;
    const [name, node, part] = ["name", "node", "part"].map((column) => table.column(column));
    const rows = new Map<string, number[]>();
    for (let row = 0; row < table.rows; row++) {
      const key = `${name.word(row)} ${node.at(row)} ${part.at(row)}`;
      const own = rows.get(key);
      if (own) own.push(row);
      else rows.set(key, [row]);
    }
    for (const [key, own] of rows) {
      const [word, at, of] = key.split(" ");
      this.seriesOf.set(key, { name: word, node: Number(at), part: Number(of), rows: Uint32Array.from(own) });
    }
    const all = [...this.seriesOf.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.node - b.node || a.part - b.part));
    const add = (to: Map<string, Series[]>, key: string, series: Series) => {
      const own = to.get(key);
      if (own) own.push(series);
      else to.set(key, [series]);
    };
    for (const series of all) {
      add(this.seriesNamed, series.name, series);
      add(this.seriesHeld, `${series.name} ${series.node}`, series);
    }
    return all;
  }

  private findLosses(): Uint32Array {
    const found: number[] = [];
    for (let row = 0; row < this.run.receptions.rows; row++) if (this.isNotable(row)) found.push(row);
    return Uint32Array.from(found);
  }
}

/** Rows by node, in the order of the table, which is that of time. */
function group(nodes: ArrayLike<number>, count: number): Uint32Array[] {
  const sizes = new Uint32Array(count);
  for (let row = 0; row < nodes.length; row++) if (nodes[row] < count) sizes[nodes[row]]++;
  const groups = Array.from(sizes, (size) => new Uint32Array(size));
  const next = new Uint32Array(count);
  for (let row = 0; row < nodes.length; row++) {
    const node = nodes[row];
    if (node < count) groups[node][next[node]++] = row;
  }
  return groups;
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

/** The first moment at which two runs differ in what was sent; `null` if they are equal. */
export function firstDifference(a: Model, b: Model): { at: number; rows: [number, number] } | null {
  const columns = (model: Model) => ["start_ns", "node", "octets", "channel"].map((name) => model.run.frames.column(name));
  const [mine, theirs] = [columns(a), columns(b)];
  const rows = Math.min(a.run.frames.rows, b.run.frames.rows);
  for (let row = 0; row < rows; row++) {
    if (mine.some((column, place) => column.at(row) !== theirs[place].at(row))) {
      return { at: Math.min(mine[0].at(row), theirs[0].at(row)), rows: [row, row] };
    }
  }
  if (a.run.frames.rows === b.run.frames.rows) return null;
  const [longer, place] = a.run.frames.rows > rows ? [mine, 0] : [theirs, 1];
  return { at: longer[0].at(rows), rows: place === 0 ? [rows, -1] : [-1, rows] };
}

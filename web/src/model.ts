// A run prepared for drawing: for each node its events in order of time, and a coarse picture of them at every scale.

import type { Column, Run } from "./data";
import { bound, Readings } from "./readings";

export { bound };

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

/** Stretches of the finest coarse picture at least: more than a screen has columns. */
const FINEST = 8192;
/** Octets of all finest pictures together at most: long runs of many events get finer ones, since closer up each event is drawn. */
const PICTURES = 48e6;

/** Outcomes of signals too weak to be heard, or of receivers that were not there. */
const UNHEARD = new Set(["too_weak", "asleep", "other_channel", "down"]);

export class Model {
  /** Nodes, and interferers after them. */
  readonly nodes: number;
  readonly end: number;
  readonly lanes: Lane[] = [];
  readonly byFrame: { from: Uint32Array; rows: Uint32Array };
  readonly readings: Readings;
  readonly lostRows: Uint32Array;
  private readonly finest: number;
  /** The state bits of each reception. */
  private readonly states: Uint8Array;
  /** Codes of outcomes that say something. */
  private readonly notable: boolean[];
  private readonly received: number;
  private readonly outcome: Column;
  private readonly start: Column;
  private readonly known: Column;
  private readonly frame: Column;
  private readonly airtime: Column;
  private readonly to: Column;
  private readonly at: Column;

  constructor(readonly run: Run) {
    const { frames, receptions } = run;
    this.nodes = run.about.nodes + run.about.interferers;
    this.end = Math.max(run.about.end_ns, 1);
    // A look-up by name for each of a million rows would take longer than all else.
    [this.outcome, this.start, this.known] = [receptions.column("outcome"), receptions.column("start_ns"), receptions.column("known_ns")];
    [this.frame, this.at] = [receptions.column("frame"), receptions.column("node")];
    [this.airtime, this.to] = [frames.column("airtime_ns"), frames.column("to")];
    this.received = this.outcome.words.indexOf("received");
    this.notable = this.outcome.words.map((why) => !UNHEARD.has(why) && why !== "received");
    this.states = this.judge();
    const [events, room] = [receptions.rows / 16, PICTURES / Math.max(1, this.nodes)];
    this.finest = Math.max(FINEST, 2 ** Math.floor(Math.log2(Math.max(1, Math.min(events, room, 1 << 17)))));
    const sent = group(frames.column("node").values, this.nodes);
    const heard = group(this.at.values, this.nodes);
    const away = this.away();
    for (let node = 0; node < this.nodes; node++) {
      const { off, down } = away[node];
      const lane: Lane = { sent: sent[node], heard: heard[node], off, down, coarse: [] };
      this.lanes.push(lane);
    }
    this.lanes.forEach((lane) => this.coarsen(lane));
    this.byFrame = this.indexFrames();
    this.readings = new Readings(run.readings, this.nodes);
    this.lostRows = this.findLosses();
  }

  /** What a node or an interferer is called. */
  name(node: number): string {
    const { names, nodes } = this.run.about;
    return names[node] ?? (node < nodes ? `node ${node}` : `interferer ${node - nodes}`);
  }

  /** How many nodes are there at a moment: not switched off, and met before it. */
  presentAt(at: number): number {
    return this.nodes - this.lanes.filter((lane) => offAt(lane, at) >= 0).length;
  }

  isInterferer(node: number): boolean {
    return node >= this.run.about.nodes;
  }

  isReceived(row: number): boolean {
    return this.outcome.values[row] === this.received;
  }

  /** Losses that say something: the receiver was there and heard it. */
  isNotable(row: number): boolean {
    return this.notable[this.outcome.values[row]] ?? false;
  }

  startOf(row: number): number {
    return this.start.values[row];
  }

  /** The end of a reception: where its frame ended, or where it was given up. */
  endOf(row: number): number {
    const frame = this.frame.at(row);
    const start = this.start.values[row];
    const known = this.known.values[row];
    if (known > start || frame < 0) return Math.max(known, start + 1);
    return start + this.airtime.values[frame];
  }

  /** Whether a reception's frame was meant for its receiver. */
  isAddressed(row: number): boolean {
    const frame = this.frame.at(row);
    if (frame < 0) return true;
    const to = this.to.at(frame);
    return to < 0 || to === this.at.at(row);
  }

  /** The state bits of a reception. */
  stateOf(row: number): number {
    return this.states[row];
  }

  /** The receptions of a frame. */
  receptionsOf(frame: number): Uint32Array {
    const { from, rows } = this.byFrame;
    return rows.subarray(from[frame], from[frame + 1]);
  }

  private judge(): Uint8Array {
    const states = new Uint8Array(this.run.receptions.rows);
    for (let row = 0; row < states.length; row++) {
      if (this.isReceived(row)) states[row] = this.isAddressed(row) ? State.receives : State.overhears;
      else if (this.isNotable(row)) states[row] = State.lost;
    }
    return states;
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

  private coarsen(lane: Lane): void {
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
      const bits = this.states[row];
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

  private findLosses(): Uint32Array {
    let count = 0;
    for (const state of this.states) if (state === State.lost) count++;
    const found = new Uint32Array(count);
    for (let row = 0, place = 0; row < this.states.length; row++) if (this.states[row] === State.lost) found[place++] = row;
    return found;
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

/** The stretch during which a node's radio is off at a moment, as a place in `off`; -1 if it is on. */
export function offAt({ off }: Lane, at: number): number {
  const pair = offFrom(off, at);
  return pair < off.length && off[pair] <= at ? pair : -1;
}

/** The first stretch that ends at a moment or after it, as a place in `off`. */
export function offFrom(off: Float64Array, at: number): number {
  let [low, high] = [0, off.length / 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (off[2 * middle + 1] < at) low = middle + 1;
    else high = middle;
  }
  return 2 * low;
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

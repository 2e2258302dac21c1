// The timeline: a lane for each node. Lanes are painted pixel by pixel into one image, so that a million events cost no more
// than a screen has columns: far out from the coarse picture, close up from the events themselves.

import { bound, Model, offFrom, State } from "./model";
import { colours, pixel } from "./theme";
import { time } from "./words";

export interface Window {
  begin: number;
  end: number;
}

export type Pick = { kind: "frame"; row: number } | { kind: "reception"; row: number };

const GUTTER = 64;
const AXIS = 22;
const LANE_MIN = 5;
const LANE_MAX = 30;

export class Timeline {
  window: Window;
  /** The first lane that is shown, in lanes; may be a fraction. */
  top = 0;
  cursor = 0;
  node = 0;
  selected: Pick | null = null;
  private image: ImageData | null = null;
  private row = new Uint32Array(0);
  private lossRow = new Uint32Array(0);
  /** The colour for each combination of state bits; 0 for none. */
  private readonly shades = new Uint32Array(64);

  constructor(readonly canvas: HTMLCanvasElement, readonly model: Model) {
    this.window = { begin: 0, end: model.end };
  }

  get laneHeight(): number {
    const room = (this.canvas.clientHeight - AXIS) / this.model.nodes;
    return Math.max(LANE_MIN, Math.min(LANE_MAX, Math.floor(room)));
  }

  get lanesShown(): number {
    return Math.max(1, Math.floor((this.canvas.clientHeight - AXIS) / this.laneHeight));
  }

  /** Moves the window by a share of its length. */
  pan(share: number): void {
    const length = this.window.end - this.window.begin;
    this.show(this.window.begin + share * length, length);
  }

  /** Makes the window `factor` times as long, around `at`. */
  zoom(factor: number, at = (this.window.begin + this.window.end) / 2): void {
    const { begin, end } = this.window;
    const length = Math.max(1000, Math.min(this.model.end, (end - begin) * factor));
    this.show(at - ((at - begin) * length) / (end - begin), length);
  }

  show(begin: number, length: number): void {
    const most = Math.max(0, this.model.end - length);
    const from = Math.max(0, Math.min(most, begin));
    this.window = { begin: from, end: from + length };
  }

  /** Brings a moment and a lane into view. */
  reveal(at: number, node: number, length = this.window.end - this.window.begin): void {
    if (at < this.window.begin || at > this.window.end || length !== this.window.end - this.window.begin) {
      this.show(at - length / 2, length);
    }
    this.scrollTo(node);
  }

  scrollTo(node: number): void {
    const shown = this.lanesShown;
    if (node < this.top) this.top = node;
    if (node >= this.top + shown) this.top = node - shown + 1;
    this.scroll(0);
  }

  scroll(lanes: number): void {
    const most = Math.max(0, this.model.nodes - this.lanesShown);
    this.top = Math.max(0, Math.min(most, this.top + lanes));
  }

  timeAt(x: number): number {
    const { begin, end } = this.window;
    return begin + ((x - GUTTER) / (this.canvas.clientWidth - GUTTER)) * (end - begin);
  }

  private xOf(at: number): number {
    const { begin, end } = this.window;
    return GUTTER + ((at - begin) / (end - begin)) * (this.canvas.clientWidth - GUTTER);
  }

  nodeAt(y: number): number {
    return Math.min(this.model.nodes - 1, Math.max(0, Math.floor(this.top + (y - AXIS) / this.laneHeight)));
  }

  /** What stands at a place: the node's own frame first, then a loss, then a reception. */
  pickAt(x: number, y: number): Pick | null {
    if (y < AXIS || x < GUTTER) return null;
    const slack = (this.window.end - this.window.begin) / (this.canvas.clientWidth - GUTTER) * 2;
    return this.pick(this.nodeAt(y), this.timeAt(x), slack);
  }

  pick(node: number, at: number, slack: number): Pick | null {
    const { model } = this;
    const lane = model.lanes[node];
    const { frames } = model.run;
    const [start, airtime] = [frames.column("start_ns"), frames.column("airtime_ns")];
    const from = bound(lane.sent, (row) => start.at(row) + airtime.at(row) < at - slack);
    if (from < lane.sent.length && start.at(lane.sent[from]) <= at + slack) {
      return { kind: "frame", row: lane.sent[from] };
    }
    let best: number | null = null;
    // Frames last less than a fifth of a second on any of our radios.
    const early = bound(lane.heard, (row) => model.startOf(row) < at - slack - 2e8);
    for (let place = early; place < lane.heard.length; place++) {
      const row = lane.heard[place];
      if (model.startOf(row) > at + slack) break;
      if (model.endOf(row) < at - slack || model.stateOf(row) === 0) continue;
      if (best === null || (model.isReceived(best) && model.isNotable(row))) best = row;
    }
    return best === null ? null : { kind: "reception", row: best };
  }

  draw(): void {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (width < 2 || height < 2) return;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d", { alpha: false })!;
    const palette = colours();
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, width, height);
    this.paintLanes(context, width, height, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawAxis(context);
    this.drawNames(context);
    this.drawSelection(context);
    context.setTransform(1, 0, 0, 1, 0, 0);
  }

  private paintLanes(context: CanvasRenderingContext2D, width: number, height: number, ratio: number): void {
    const left = Math.round(GUTTER * ratio);
    const top = Math.round(AXIS * ratio);
    const columns = width - left;
    const rows = height - top;
    if (columns < 1 || rows < 1) return;
    if (!this.image || this.image.width !== columns || this.image.height !== rows) {
      this.image = context.createImageData(columns, rows);
      this.row = new Uint32Array(columns);
      this.lossRow = new Uint32Array(columns);
    }
    const pixels = new Uint32Array(this.image.data.buffer);
    const palette = colours();
    const ground = pixel(palette.ground);
    const chosen = pixel(palette.raised);
    pixels.fill(ground);
    this.shade();
    const lane = this.laneHeight * ratio;
    const first = Math.floor(this.top);
    for (let node = first; node < this.model.nodes; node++) {
      const y0 = Math.round((node - this.top) * lane);
      const y1 = Math.min(rows, Math.round((node + 1 - this.top) * lane) - 1);
      if (y0 >= rows) break;
      const back = node === this.node ? chosen : ground;
      this.row.fill(back);
      this.lossRow.fill(back);
      this.fillLane(node, columns);
      const split = y0 + Math.max(1, Math.round((y1 - y0) * 0.68));
      for (let y = Math.max(0, y0); y < y1; y++) {
        pixels.set(y < split ? this.row : this.lossRow, y * columns);
      }
    }
    context.putImageData(this.image, left, top);
  }

  /** What is painted where several states fall into one column: the last of these. */
  private shade(): void {
    const palette = colours();
    const order: [number, string][] = [
      [State.lost, palette.lost],
      [State.asleep, palette.asleep],
      [State.down, palette.down],
      [State.overhears, palette.overhears],
      [State.receives, palette.receives],
      [State.sends, palette.sends],
    ];
    for (const [state, colour] of order) {
      const word = pixel(colour);
      for (let bits = 0; bits < this.shades.length; bits++) if (bits & state) this.shades[bits] = word;
    }
  }

  /** The colours of one lane, column by column: what the radio does, and below it what it lost. */
  private fillLane(node: number, columns: number): void {
    const { begin, end } = this.window;
    const { model } = this;
    const lane = model.lanes[node];
    const lost = this.shades[State.lost];
    const perColumn = (end - begin) / columns;
    const finest = lane.coarse[0].length;
    if (perColumn >= model.end / finest) {
      // The coarsest picture that still has a stretch for each column.
      let level = 0;
      while (level + 1 < lane.coarse.length && model.end / lane.coarse[level + 1].length <= perColumn) level++;
      const picture = lane.coarse[level];
      const scale = picture.length / model.end;
      const { row, lossRow, shades } = this;
      for (let x = 0; x < columns; x++) {
        const from = Math.floor((begin + x * perColumn) * scale);
        const to = Math.min(picture.length - 1, Math.floor((begin + (x + 1) * perColumn) * scale));
        let bits = 0;
        for (let place = from; place <= to; place++) bits |= picture[place];
        const shade = shades[bits & ~State.lost];
        if (shade !== 0) row[x] = shade;
        if (bits & State.lost) lossRow[x] = lost;
      }
      return;
    }
    const mark = (row: Uint32Array, from: number, to: number, colour: number) => {
      const x0 = Math.max(0, Math.floor((from - begin) / perColumn));
      const x1 = Math.min(columns - 1, Math.floor((to - begin) / perColumn));
      for (let x = x0; x <= x1; x++) row[x] = colour;
    };
    for (let pair = offFrom(lane.off, begin); pair < lane.off.length && lane.off[pair] <= end; pair += 2) {
      mark(this.row, lane.off[pair], lane.off[pair + 1], this.shades[lane.down[pair / 2] ? State.down : State.asleep]);
    }
    const early = bound(lane.heard, (row) => model.startOf(row) < begin - 2e8);
    for (let place = early; place < lane.heard.length; place++) {
      const row = lane.heard[place];
      const start = model.startOf(row);
      if (start > end) break;
      const bits = model.stateOf(row);
      if (bits === 0) continue;
      const until = model.endOf(row);
      if (until < begin) continue;
      mark(bits === State.lost ? this.lossRow : this.row, start, until, this.shades[bits]);
    }
    const { frames } = model.run;
    const [start, airtime] = [frames.column("start_ns"), frames.column("airtime_ns")];
    const own = bound(lane.sent, (row) => start.at(row) + airtime.at(row) < begin);
    for (let place = own; place < lane.sent.length && start.at(lane.sent[place]) <= end; place++) {
      const row = lane.sent[place];
      mark(this.row, start.at(row), start.at(row) + airtime.at(row), this.shades[State.sends]);
    }
  }

  private drawAxis(context: CanvasRenderingContext2D): void {
    const palette = colours();
    const { begin, end } = this.window;
    const width = this.canvas.clientWidth;
    const step = niceStep((end - begin) / Math.max(2, (width - GUTTER) / 110));
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = palette.quiet;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
      const x = Math.round(this.xOf(at)) + 0.5;
      context.beginPath();
      context.moveTo(x, AXIS - 5);
      context.lineTo(x, AXIS);
      context.stroke();
      if (x < width - 60) context.fillText(time(at, step), x + 3, AXIS / 2);
    }
    const x = this.xOf(this.cursor);
    if (x >= GUTTER && x <= width) {
      context.strokeStyle = palette.accent;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, this.canvas.clientHeight);
      context.stroke();
    }
  }

  private drawNames(context: CanvasRenderingContext2D): void {
    const palette = colours();
    const lane = this.laneHeight;
    const every = Math.max(1, Math.ceil(12 / lane));
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let node = Math.floor(this.top); node < this.model.nodes; node++) {
      const y = AXIS + (node - this.top + 0.5) * lane;
      if (y > this.canvas.clientHeight) break;
      if (node % every !== 0 && node !== this.node) continue;
      // The chosen node's name takes the place of those beside it.
      if (node !== this.node && Math.abs(node - this.node) * lane < 11) continue;
      context.font = node === this.node ? "600 11px system-ui, sans-serif" : "11px system-ui, sans-serif";
      context.fillStyle = node === this.node ? palette.text : palette.quiet;
      context.fillText(fit(context, this.model.isInterferer(node) ? `✕ ${node - this.model.run.about.nodes}` : this.model.name(node), GUTTER - 10), GUTTER - 8, y);
    }
  }

  private drawSelection(context: CanvasRenderingContext2D): void {
    if (!this.selected) return;
    const { model } = this;
    const palette = colours();
    const box = (node: number, from: number, to: number, colour: string) => {
      const y = AXIS + (node - this.top) * this.laneHeight;
      const x = Math.max(GUTTER, this.xOf(from));
      const width = Math.max(3, this.xOf(to) - x);
      if (y < AXIS - 1 || x > this.canvas.clientWidth) return;
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(x - 1, y, width + 2, this.laneHeight - 1);
    };
    const { frames, receptions } = model.run;
    const frameBox = (row: number, colour: string) => {
      const start = frames.column("start_ns").at(row);
      box(frames.column("node").at(row), start, start + frames.column("airtime_ns").at(row), colour);
    };
    if (this.selected.kind === "frame") {
      frameBox(this.selected.row, palette.accent);
      return;
    }
    const row = this.selected.row;
    box(receptions.column("node").at(row), model.startOf(row), model.endOf(row), palette.accent);
    const frame = receptions.column("frame").at(row);
    if (frame >= 0) frameBox(frame, palette.accent);
    const culprit = receptions.column("culprit").at(row);
    if (culprit >= 0) frameBox(culprit, palette.lost);
  }
}

/** As much of a text as there is room for. */
export function fit(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let letters = text.length - 1;
  while (letters > 1 && context.measureText(`${text.slice(0, letters)}…`).width > room) letters--;
  return `${text.slice(0, letters)}…`;
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-12)));
  return ([1, 2, 5].find((factor) => factor * power >= least) ?? 10) * power;
}

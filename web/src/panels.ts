// What nodes held: lines over time for one node, or all nodes at one moment; and the packets of a pipeline.

import { Cells } from "./cells";
import { bound, Model } from "./model";
import type { Moment, Series } from "./readings";
import { colours } from "./theme";
import { fit, niceStep, type Window } from "./timeline";
import { number, plain, time } from "./words";

/** The panels that a system's readings call for, with a sentence that says what they show. */
const MEANINGS: Record<string, string> = {
  rank: "Independent packets of each batch; a batch is decoded when its rank is full.",
  batches_done: "Batches that are decoded.",
  queue: "Packets that wait for each destination.",
  price: "How many more packets wait here than at the best next hop, per transmission.",
  rate: "Packets a second that this source may send to each destination.",
  sequence: "Next sequence number of each connection.",
  congestion_window: "Octets that may be in flight, for each connection.",
  in_flight: "Octets in flight, for each connection.",
  slot: "Number of the slot.",
  repairs: "Repairs sent, planned and to fill slots.",
  repeats: "Packets sent again.",
  state: "State of the protocol.",
};

/** Kinds of frames whose numbers are those of packets of one sequence. */
const NUMBERED = new Set(["data", "coded", "repair"]);

export type Mode = "time" | "moment" | "packets";

export class Panels {
  private painted: { key: string; cells: Cells } | null = null;
  private moment: { name: string; of: Moment } | null = null;
  private readonly numbered: boolean;

  constructor(readonly canvas: HTMLCanvasElement, readonly model: Model) {
    this.numbered = this.hasNumbered();
  }

  /** The readings that there are. */
  names(): string[] {
    return this.model.readings.names;
  }

  /** Whether frames have packet numbers to draw. */
  hasPackets(): boolean {
    return this.numbered;
  }

  private hasNumbered(): boolean {
    const { frames } = this.model.run;
    const [packet, kind] = [frames.column("packet"), frames.column("kind")];
    for (let row = 0; row < frames.rows; row++) if (packet.at(row) > 0 && NUMBERED.has(kind.word(row))) return true;
    return false;
  }

  meaning(name: string): string {
    return MEANINGS[name] ?? `${plain(name)}, as the protocol counts it.`;
  }

  draw(mode: Mode, name: string, node: number, at: number, shown: Window): void {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (width < 2 || height < 2) return;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d", { alpha: false })!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colours().ground;
    context.fillRect(0, 0, width, height);
    if (mode === "time") this.drawLines(context, name, node, at, shown);
    else if (mode === "moment") this.drawMoment(context, name, node, at);
    else this.drawPackets(context, at, shown);
  }

  private drawLines(context: CanvasRenderingContext2D, name: string, node: number, at: number, shown: Window): void {
    const palette = colours();
    const own = this.model.readings.of(name, node);
    if (own.length === 0) {
      this.say(context, `${this.model.name(node)} has no ${plain(name)}. Choose another node, or all nodes (m).`);
      return;
    }
    const readings = this.model.run.readings;
    const [times, values] = [readings.column("at_ns").values, readings.column("value").values];
    if (own.every((series) => series.rows.every((row) => Number.isNaN(values[row])))) {
      this.drawWords(context, own[0], shown, at);
      return;
    }
    let [low, high] = [Infinity, -Infinity];
    for (const series of own) {
      const first = Math.max(0, bound(series.rows, (row) => times[row] <= shown.begin) - 1);
      for (let place = first; place < series.rows.length; place++) {
        const row = series.rows[place];
        if (times[row] > shown.end) break;
        low = Math.min(low, values[row]);
        high = Math.max(high, values[row]);
      }
    }
    if (low > high) [low, high] = [0, 1];
    if (low > 0 && (low < high / 2 || name.endsWith("_per_s"))) low = 0;
    if (high === low) high = low + 1;
    const frame = this.axes(context, shown, low, high);
    own.slice(0, 64).forEach((series, place) => {
      context.strokeStyle = palette.series[place % palette.series.length];
      context.lineWidth = 1.5;
      context.beginPath();
      let last = NaN;
      const first = Math.max(0, bound(series.rows, (row) => times[row] <= shown.begin) - 1);
      for (let step = first; step < series.rows.length; step++) {
        const row = series.rows[step];
        const [x, y] = [frame.x(Math.max(times[row], shown.begin)), frame.y(values[row])];
        if (times[row] > shown.end) break;
        if (Number.isNaN(last)) context.moveTo(x, y);
        else {
          context.lineTo(x, last);
          context.lineTo(x, y);
        }
        last = y;
      }
      // A value holds until the next one; a batch that is decoded is in progress no longer.
      if (!Number.isNaN(last) && name !== "rank") context.lineTo(frame.x(shown.end), last);
      context.stroke();
    });
    this.drawCursor(context, frame.x(at));
    if (own.length > 1 && own.length <= 8) {
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "right";
      context.textBaseline = "top";
      own.forEach((series, place) => {
        context.fillStyle = palette.series[place % palette.series.length];
        context.fillRect(frame.right - 62, 9 + place * 14, 10, 3);
        context.fillStyle = palette.text;
        context.fillText(`of ${series.part}`, frame.right - 8, 5 + place * 14);
      });
    }
  }

  private drawWords(context: CanvasRenderingContext2D, series: Series, shown: Window, at: number): void {
    const palette = colours();
    const readings = this.model.run.readings;
    const words = readings.column("word");
    const times = readings.column("at_ns");
    const frame = this.axes(context, shown, 0, 1, false);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "middle";
    series.rows.forEach((row, place) => {
      const until = place + 1 < series.rows.length ? times.at(series.rows[place + 1]) : this.model.end;
      if (until < shown.begin || times.at(row) > shown.end) return;
      const x = frame.x(Math.max(shown.begin, times.at(row)));
      const width = frame.x(Math.min(shown.end, until)) - x;
      context.fillStyle = palette.series[words.values[row] % palette.series.length];
      context.fillRect(x, frame.y(0.75), Math.max(1, width - 1), frame.y(0.5) - frame.y(0.75));
      context.fillStyle = palette.text;
      const label = plain(words.word(row));
      if (width > context.measureText(label).width + 8) context.fillText(label, x + 4, frame.y(0.42));
    });
    this.drawCursor(context, frame.x(at));
  }

  /** Nodes down, parts across, the value as a shade. */
  private drawMoment(context: CanvasRenderingContext2D, name: string, node: number, at: number): void {
    const palette = colours();
    if (this.moment?.name !== name) this.moment = { name, of: this.model.readings.moment(name) };
    const grid = this.moment.of;
    grid.seek(at);
    const { nodes, parts } = grid;
    const [left, top] = [64, 24];
    const [width, height] = [this.canvas.clientWidth - left - 8, this.canvas.clientHeight - top - 8];
    const [cellX, cellY] = [width / Math.max(1, parts.length), Math.min(26, height / Math.max(1, nodes.length))];
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    const each = Math.max(1, Math.ceil(11 / cellY));
    nodes.forEach((which, row) => {
      if (row % each !== 0) return;
      context.fillStyle = which === node ? palette.text : palette.quiet;
      context.fillText(fit(context, this.model.name(which), left - 10), left - 8, top + (row + 0.5) * cellY);
    });
    context.textAlign = "center";
    context.fillStyle = palette.quiet;
    const every = Math.max(1, Math.ceil(28 / cellX));
    parts.forEach((part, place) => {
      if (place % every === 0) context.fillText(String(part), left + (place + 0.5) * cellX, top / 2);
    });
    if (cellX < 3 || cellY < 3) this.showCells(context, grid, { left, top, width, height: nodes.length * cellY });
    else this.drawCells(context, grid, { left, top, cellX, cellY });
  }

  /** Many small cells, of which those are painted anew that have changed. */
  private showCells(context: CanvasRenderingContext2D, grid: Moment, at: { left: number; top: number; width: number; height: number }): void {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [at.width, at.height].map((length) => Math.max(1, Math.round(length * ratio)));
    const key = `${this.moment?.name} ${width} ${height} ${colours().ground}`;
    if (this.painted?.key !== key) this.painted = { key, cells: new Cells(grid, width, height) };
    // Without regard to the scale of the drawing.
    context.putImageData(this.painted.cells.paint(), Math.round(at.left * ratio), Math.round(at.top * ratio));
  }

  private drawCells(context: CanvasRenderingContext2D, grid: Moment, at: { left: number; top: number; cellX: number; cellY: number }): void {
    const palette = colours();
    const { cellX, cellY } = at;
    grid.values.forEach((value, cell) => {
      if (grid.known[cell] === 0) return;
      const [x, y] = [at.left + (cell % grid.parts.length) * cellX, at.top + Math.floor(cell / grid.parts.length) * cellY];
      context.globalAlpha = 0.12;
      context.fillStyle = palette.quiet;
      context.fillRect(x + 0.5, y + 0.5, cellX - 1, cellY - 1);
      if (Number.isNaN(value) || value <= 0) return;
      context.globalAlpha = 0.15 + (0.85 * value) / Math.max(grid.high, 1e-9);
      context.fillStyle = palette.accent;
      context.fillRect(x + 0.5, y + 0.5, cellX - 1, cellY - 1);
      if (cellX > 34 && cellY > 13) {
        context.globalAlpha = 1;
        context.fillStyle = value > 0.5 * grid.high ? palette.ground : palette.text;
        context.fillText(number(value), x + cellX / 2, y + cellY / 2);
      }
    });
    context.globalAlpha = 1;
  }

  /** Each frame with a packet number, by its sender: the pipeline as it moves. */
  private drawPackets(context: CanvasRenderingContext2D, at: number, shown: Window): void {
    const palette = colours();
    const { frames } = this.model.run;
    const [start, packet, node, part, kind] = ["start_ns", "packet", "node", "part", "kind"].map((name) => frames.column(name));
    let [low, high] = [Infinity, -Infinity];
    const rows: number[] = [];
    for (let row = firstAfter(start.values, frames.rows, shown.begin); row < frames.rows; row++) {
      // Bursts of interferers may stand a little out of order.
      if (start.at(row) > shown.end + 1e9) break;
      if (start.at(row) < shown.begin || start.at(row) > shown.end || packet.at(row) < 0) continue;
      if (!NUMBERED.has(kind.word(row))) continue;
      rows.push(row);
      low = Math.min(low, packet.at(row));
      high = Math.max(high, packet.at(row));
    }
    if (rows.length === 0) {
      this.say(context, "No numbered packets in this stretch of time.");
      return;
    }
    const frame = this.axes(context, shown, low, Math.max(high, low + 1));
    const size = Math.max(1.5, Math.min(5, 1500 / rows.length));
    // More frames than there is room for: one for each place.
    const [across, taken] = [this.canvas.clientWidth, new Uint8Array(rows.length > 5000 ? this.canvas.clientWidth * this.canvas.clientHeight : 0)];
    for (const row of rows) {
      const stage = part.at(row) >= 0 ? part.at(row) : node.at(row);
      const [x, y] = [frame.x(start.at(row)), frame.y(packet.at(row))];
      if (taken.length > 0) {
        const place = Math.floor(y) * across + Math.floor(x);
        if (taken[place] === 1) continue;
        taken[place] = 1;
      }
      context.fillStyle = palette.series[stage % palette.series.length];
      context.fillRect(x - size / 2, y - size / 2, size, size);
    }
    this.drawCursor(context, frame.x(at));
  }

  private axes(context: CanvasRenderingContext2D, shown: Window, low: number, high: number, scale = true) {
    const palette = colours();
    const [left, top, right] = [64, 8, this.canvas.clientWidth - 10];
    const bottom = this.canvas.clientHeight - 22;
    const x = (at: number) => left + ((at - shown.begin) / (shown.end - shown.begin)) * (right - left);
    const y = (value: number) => bottom - ((value - low) / (high - low)) * (bottom - top);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = palette.quiet;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    if (scale) {
      context.textAlign = "right";
      const step = niceStep((high - low) / Math.max(2, (bottom - top) / 40));
      for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) {
        const at = Math.round(y(value)) + 0.5;
        context.beginPath();
        context.moveTo(left, at);
        context.lineTo(right, at);
        context.stroke();
        context.fillText(number(Number(value.toPrecision(6))), left - 6, at);
      }
    }
    context.textAlign = "left";
    const step = niceStep((shown.end - shown.begin) / Math.max(2, (right - left) / 110));
    for (let at = Math.ceil(shown.begin / step) * step; at <= shown.end; at += step) {
      if (x(at) < right - 50) context.fillText(time(at, step), x(at), bottom + 12);
    }
    context.strokeRect(left + 0.5, top + 0.5, right - left, bottom - top);
    return { x, y, right };
  }

  private drawCursor(context: CanvasRenderingContext2D, x: number): void {
    if (x < 64 || x > this.canvas.clientWidth) return;
    context.strokeStyle = colours().accent;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, 8);
    context.lineTo(x, this.canvas.clientHeight - 22);
    context.stroke();
  }

  private say(context: CanvasRenderingContext2D, text: string): void {
    context.font = "13px system-ui, sans-serif";
    context.fillStyle = colours().quiet;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2);
  }
}

/** The first row whose time may lie at or after a moment, in a table in order of time but for a second. */
function firstAfter(times: ArrayLike<number>, rows: number, at: number): number {
  let [low, high] = [0, rows];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < at - 1e9) low = middle + 1;
    else high = middle;
  }
  return low;
}

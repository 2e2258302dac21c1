// The network: nodes where they stand, or in rings around node 0, links by quality, and what is on the air at a moment.

import { bound, Model, offAt } from "./model";
import { colours } from "./theme";

/** The radius of a node, the height of a line of text and that of its letters, in the page's pixels. */
const RADIUS = 9;
const LINE = 12;
const LETTER = 8;
/** Between the outermost nodes and the map's edge, in the page's pixels. */
const MARGIN = 26;
/** More nodes than this are small, and only the chosen one and the one under the pointer are named. */
const MANY = 150;

export class NetworkMap {
  node = 0;
  at = 0;
  /** The node under the pointer. */
  hovered: number | null = null;
  private places: [number, number][];
  /** The canvas's width and height in the page's pixels, as last drawn: to ask for them lays the page out. */
  private size: [number, number] = [0, 0];
  private network: { key: string; canvas: HTMLCanvasElement } | null = null;
  /** Where the names of nodes stand in that picture; nothing where one has no room. */
  private spots: (Spot | undefined)[] = [];

  constructor(readonly canvas: HTMLCanvasElement, readonly model: Model) {
    this.places = layout(model);
  }

  nodeAt(x: number, y: number): number | null {
    let best: number | null = null;
    let least = 18 ** 2;
    for (let node = 0; node < this.places.length; node++) {
      const [a, b] = this.point(node);
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < least) [best, least] = [node, distance];
    }
    return best;
  }

  private point(node: number): [number, number] {
    const [x, y] = this.places[node];
    return [MARGIN + x * (this.size[0] - 2 * MARGIN), MARGIN + y * (this.size[1] - 2 * MARGIN)];
  }

  draw(): void {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    this.size = [canvas.clientWidth, canvas.clientHeight];
    const [width, height] = this.size.map((length) => Math.round(length * ratio));
    if (width < 2 || height < 2) return;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d", { alpha: false })!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.background(width, height, ratio), 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawAir(context);
    if (this.hovered !== null && this.hovered < this.places.length) this.drawOnTop(context, this.hovered);
  }

  /** Links and nodes, drawn once for each size and theme. */
  private background(width: number, height: number, ratio: number): HTMLCanvasElement {
    const palette = colours();
    const key = `${width} ${height} ${palette.ground} ${this.node}`;
    if (this.network?.key === key) return this.network.canvas;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d", { alpha: false })!;
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, width, height);
    context.scale(ratio, ratio);
    const links = this.model.run.links;
    const [from, to, delivery] = ["from", "to", "delivery"].map((name) => links.column(name));
    context.strokeStyle = palette.quiet;
    // A dense network would be a single blot.
    const dim = Math.min(1, 500 / Math.max(1, links.rows) + 0.12);
    for (let row = 0; row < links.rows; row++) {
      const [a, b] = [from.at(row), to.at(row)];
      if (a >= this.places.length || b >= this.places.length) continue;
      const own = a === this.node;
      const quality = delivery.at(row);
      context.globalAlpha = (own ? 0.9 : 0.5 * dim) * quality ** 1.5;
      context.strokeStyle = own ? palette.accent : palette.quiet;
      context.lineWidth = own ? 1.5 : 0.5 + quality;
      const [x, y] = this.point(a);
      const [u, v] = this.point(b);
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(u, v);
      context.stroke();
    }
    context.globalAlpha = 1;
    for (let node = 0; node < this.places.length; node++) if (node !== this.node) this.drawNode(context, node);
    this.drawNames(context);
    this.drawScale(context);
    if (this.node < this.places.length) this.drawOnTop(context, this.node);
    this.network = { key, canvas };
    return canvas;
  }

  /** A round length across and one down, in the lower left corner: the map is stretched to its panel, so they differ. */
  private drawScale(context: CanvasRenderingContext2D): void {
    const spans = extent(this.model);
    if (spans === null) return;
    const [across, down] = spans.map((span, axis) => roundLength(span, this.size[axis] - 2 * MARGIN, [80, 40][axis]));
    const [x, y] = [4.5, this.size[1] - 4.5];
    context.strokeStyle = context.fillStyle = colours().quiet;
    context.lineWidth = 1;
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "bottom";
    context.textAlign = "left";
    context.beginPath();
    if (down !== null) {
      context.moveTo(x, y - down.pixels);
      context.lineTo(x, y);
      context.fillText(down.text, x + 3, y - down.pixels + LETTER);
    }
    if (across !== null) {
      context.moveTo(x, y);
      context.lineTo(x + across.pixels, y);
      context.fillText(across.text, x + across.pixels + 3, y + 4);
    }
    context.stroke();
  }

  private radius(node: number): number {
    if (this.places.length <= MANY) return RADIUS;
    return node === this.node ? 6 : 3;
  }

  private drawNode(context: CanvasRenderingContext2D, node: number): void {
    const palette = colours();
    const [x, y] = this.point(node);
    const own = node === this.node;
    const size = this.radius(node);
    context.beginPath();
    if (this.model.isInterferer(node)) {
      context.moveTo(x, y - size);
      [[x + size, y], [x, y + size], [x - size, y]].forEach(([u, v]) => context.lineTo(u, v));
      context.closePath();
    } else context.arc(x, y, size, 0, 7);
    context.fillStyle = palette.raised;
    context.fill();
    context.strokeStyle = own ? palette.accent : palette.quiet;
    context.lineWidth = own ? 2.5 : 1;
    context.stroke();
  }

  /** What a node is called on the map: its name or its number. */
  private label(node: number): string {
    const name = this.model.run.about.names[node];
    return name || (this.model.isInterferer(node) ? "✕" : String(node));
  }

  /** Whether a label stands within its node's circle. */
  private isWithin(node: number): boolean {
    return this.places.length <= MANY && !this.model.run.about.names[node];
  }

  /** The names of all nodes but the chosen one. One that would hide another stands beside its node, and if there is no room it is left out. */
  private drawNames(context: CanvasRenderingContext2D): void {
    this.spots = [];
    if (this.places.length > MANY) return;
    writeNames(context);
    const points = this.places.map((_, node) => this.point(node));
    const taken: Box[] = [];
    [context.fillStyle, context.strokeStyle, context.lineWidth, context.lineJoin] = [colours().text, colours().ground, 3, "round"];
    // The chosen node's name is drawn last and needs its room first.
    const own = this.node;
    const order = [...points.keys()].sort((a, b) => Number(b === own) - Number(a === own));
    for (const node of order) {
      const [x, y] = points[node];
      const text = this.label(node);
      const [across, size] = [context.measureText(text).width, this.radius(node)];
      const beside = size + across / 2 + 3;
      const [slanted, aloft] = [0.7 * size + across / 2 + 2, 0.7 * size + LINE / 2];
      const spots: Spot[] = [[x, y + size + 7], [x, y - size - 6], [x + beside, y], [x - beside, y]];
      for (const [u, v] of [[1, -1], [1, 1], [-1, -1], [-1, 1]]) spots.push([x + u * slanted, y + v * aloft]);
      if (this.isWithin(node)) spots.unshift([x, y]);
      const free = ([u, v]: Spot) => {
        const box = around(u, v, across, LETTER);
        const inside = box.left >= 0 && box.right <= this.size[0] && box.top >= 0 && box.bottom <= this.size[1];
        return inside && !taken.some((other) => meet(box, other)) && !points.some((at, other) => other !== node && covers(at, this.radius(other), box));
      };
      const spot = node === own ? this.spotOnTop(node, size) : spots.find(free);
      if (!spot) continue;
      this.spots[node] = spot;
      taken.push(around(spot[0], spot[1], across + 2, LETTER));
      if (node === own) continue;
      // Letters beside a node stand on links.
      if (spot[0] !== x || spot[1] !== y) context.strokeText(text, spot[0], spot[1] + 0.5);
      context.fillText(text, spot[0], spot[1] + 0.5);
    }
  }

  /** Where the name of a node stands that is drawn above all others. */
  private spotOnTop(node: number, size: number): Spot {
    const [x, y] = this.point(node);
    if (this.isWithin(node)) return [x, y];
    return y + size + LINE + 4 < this.size[1] ? [x, y + size + 7] : [x, y - size - 6];
  }

  /** A node with its name, which stays where it stands, on a ground of its own if that is beside the node. */
  private drawOnTop(context: CanvasRenderingContext2D, node: number): void {
    const palette = colours();
    writeNames(context);
    this.drawNode(context, node);
    const text = this.label(node);
    const [x, y] = this.spots[node] ?? this.spotOnTop(node, this.radius(node));
    const [u, v] = this.point(node);
    if (x !== u || y !== v) {
      const across = context.measureText(text).width + 4;
      context.fillStyle = palette.ground;
      context.fillRect(x - across / 2, y - LINE / 2, across, LINE);
    }
    context.fillStyle = palette.text;
    context.fillText(text, x, y + 0.5);
  }

  /** Frames on the air, and what becomes of them at their receivers. */
  private drawAir(context: CanvasRenderingContext2D): void {
    const { model, at } = this;
    const palette = colours();
    const { frames, receptions } = model.run;
    const [start, airtime, node] = ["start_ns", "airtime_ns", "node"].map((name) => frames.column(name));
    for (let source = 0; source < model.nodes; source++) {
      const sent = model.lanes[source].sent;
      const place = bound(sent, (row) => start.at(row) + airtime.at(row) < at);
      const row = sent[place];
      if (place >= sent.length || start.at(row) > at) continue;
      const [x, y] = this.point(node.at(row));
      for (const reception of model.receptionsOf(row)) {
        const received = model.isReceived(reception);
        if (!received && !model.isNotable(reception)) continue;
        const to = receptions.column("node").at(reception);
        const [u, v] = this.point(to);
        // From edge to edge: a line through the circles would hide their numbers.
        const length = Math.hypot(u - x, v - y);
        const [a, b] = [this.radius(node.at(row)), this.radius(to)].map((radius) => (length > 3 * RADIUS ? radius / length : 0));
        context.strokeStyle = received ? palette.receives : palette.lost;
        context.setLineDash(received ? [] : [4, 4]);
        context.lineWidth = received && model.isAddressed(reception) ? 2 : 1;
        context.beginPath();
        context.moveTo(x + a * (u - x), y + a * (v - y));
        context.lineTo(u - b * (u - x), v - b * (v - y));
        context.stroke();
      }
      context.setLineDash([]);
      context.fillStyle = palette.sends;
      context.beginPath();
      context.arc(x, y, 11, 0, 7);
      context.globalAlpha = 0.45;
      context.fill();
      context.globalAlpha = 1;
      this.writeWithin(context, node.at(row));
    }
    for (let place = 0; place < model.nodes; place++) {
      const pair = offAt(model.lanes[place], at);
      if (pair < 0) continue;
      const [x, y] = this.point(place);
      context.fillStyle = model.lanes[place].down[pair / 2] ? palette.down : palette.asleep;
      context.beginPath();
      context.arc(x, y, 6, 0, 7);
      context.fill();
      this.writeWithin(context, place);
    }
  }

  /** The number of a node again, on what was painted over it, unless it stands beside the node. */
  private writeWithin(context: CanvasRenderingContext2D, node: number): void {
    const [x, y] = this.point(node);
    const [u, v] = this.spots[node] ?? [x, y];
    if (!this.isWithin(node) || u !== x || v !== y) return;
    writeNames(context);
    context.fillStyle = colours().text;
    context.fillText(this.label(node), x, y + 0.5);
  }
}

/** A place on the map, in the page's pixels. */
type Spot = [number, number];

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

function around(x: number, y: number, width: number, height: number): Box {
  return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

function meet(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** Whether a circle reaches into a box. */
function covers([x, y]: [number, number], radius: number, box: Box): boolean {
  const [across, down] = [Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom)];
  return across ** 2 + down ** 2 < radius ** 2;
}

function writeNames(context: CanvasRenderingContext2D): void {
  context.font = "10px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
}

/** Width and height of the network in metres, if its places are known. */
function extent(model: Model): [number, number] | null {
  const given = model.run.about.positions_m;
  if (given.length < model.nodes || model.nodes === 0) return null;
  const span = (values: number[]) => Math.max(...values) - Math.min(...values);
  return [span(given.map(([x]) => x)), span(given.map(([, y]) => y))];
}

/** A length of 1, 2 or 5 times a power of ten metres that takes at most `room` of the pixels in which `metres` are drawn. */
function roundLength(metres: number, pixels: number, room: number): { pixels: number; text: string } | null {
  if (metres <= 0 || pixels <= 0) return null;
  const most = (room * metres) / pixels;
  const ten = 10 ** Math.floor(Math.log10(most));
  const length = ten * [5, 2, 1].find((digit) => digit * ten <= most)!;
  const text = length >= 1000 ? `${length / 1000} km` : `${Number(length.toPrecision(1))} m`;
  return { pixels: (length * pixels) / metres, text };
}

/** Places within the unit square, which is stretched to the map's size. */
function layout(model: Model): [number, number][] {
  const given = model.run.about.positions_m;
  const spans = extent(model);
  if (spans !== null) {
    const [left, top] = [Math.min(...given.map(([x]) => x)), Math.min(...given.map(([, y]) => y))];
    const [width, height] = spans;
    // A line of nodes has no height: it goes through the middle.
    const place = (value: number, from: number, length: number) => (length > 0 ? (value - from) / length : 0.5);
    return given.slice(0, model.nodes).map(([x, y]) => [place(x, left, width), 1 - place(y, top, height)]);
  }
  return rings(model);
}

/** By hops from node 0 over good links: from left to right, each column in order. */
function rings(model: Model): [number, number][] {
  const links = model.run.links;
  const next: number[][] = Array.from({ length: model.nodes }, () => []);
  for (let row = 0; row < links.rows; row++) {
    if (links.column("delivery").at(row) < 0.3) continue;
    next[links.column("from").at(row)]?.push(links.column("to").at(row));
  }
  const hops = new Array<number>(model.nodes).fill(-1);
  let front = model.nodes > 0 ? [0] : [];
  for (let hop = 0; front.length > 0; hop++) {
    front.forEach((node) => (hops[node] = hop));
    front = [...new Set(front.flatMap((node) => next[node]))].filter((node) => node < model.nodes && hops[node] < 0);
  }
  const last = Math.max(1, ...hops);
  const columns: number[][] = Array.from({ length: last + 2 }, () => []);
  hops.forEach((hop, node) => columns[hop < 0 ? last + 1 : hop].push(node));
  const width = columns[last + 1].length > 0 ? last + 1 : last;
  const places: [number, number][] = Array.from({ length: model.nodes }, () => [0, 0]);
  columns.forEach((column, hop) =>
    column.forEach((node, place) => {
      // Every other column is shifted, so that lines do not run through nodes.
      const shift = hop % 2 === 1 && column.length === 1 ? 0.12 : 0;
      places[node] = [hop / width, (place + 0.5) / column.length + shift];
    }),
  );
  return places;
}

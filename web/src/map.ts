// The network: nodes where they stand, or in rings around node 0, links by quality, and what is on the air at a moment.

import { bound, Model, offAt } from "./model";
import { colours } from "./theme";

export class NetworkMap {
  node = 0;
  at = 0;
  private places: [number, number][];
  /** The canvas's width and height in the page's pixels, as last drawn: to ask for them lays the page out. */
  private size: [number, number] = [0, 0];
  private network: { key: string; canvas: HTMLCanvasElement } | null = null;

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
    const margin = 26;
    const [x, y] = this.places[node];
    return [margin + x * (this.size[0] - 2 * margin), margin + y * (this.size[1] - 2 * margin)];
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
    const many = this.places.length > 150;
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let node = 0; node < this.places.length; node++) {
      const [x, y] = this.point(node);
      const own = node === this.node;
      const size = many ? (own ? 6 : 3) : 9;
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
      if (!many || own) {
        context.fillStyle = palette.text;
        const name = this.model.run.about.names[node];
        const letter = this.model.isInterferer(node) ? "✕" : String(node);
        context.fillText(name ? "" : letter, x, many ? y - 13 : y + 0.5);
        if (name) context.fillText(name, x, y + 17);
      }
    }
    this.network = { key, canvas };
    return canvas;
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
        const [u, v] = this.point(receptions.column("node").at(reception));
        context.strokeStyle = received ? palette.receives : palette.lost;
        context.setLineDash(received ? [] : [4, 4]);
        context.lineWidth = received && model.isAddressed(reception) ? 2 : 1;
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(u, v);
        context.stroke();
      }
      context.setLineDash([]);
      context.fillStyle = palette.sends;
      context.beginPath();
      context.arc(x, y, 11, 0, 7);
      context.globalAlpha = 0.45;
      context.fill();
      context.globalAlpha = 1;
    }
    for (let place = 0; place < model.nodes; place++) {
      const pair = offAt(model.lanes[place], at);
      if (pair < 0) continue;
      const [x, y] = this.point(place);
      context.fillStyle = model.lanes[place].down[pair / 2] ? palette.down : palette.asleep;
      context.beginPath();
      context.arc(x, y, 6, 0, 7);
      context.fill();
    }
  }
}

/** Places within the unit square, which is stretched to the map's size. */
function layout(model: Model): [number, number][] {
  const given = model.run.about.positions_m;
  if (given.length >= model.nodes && model.nodes > 0) {
    const xs = given.map(([x]) => x);
    const ys = given.map(([, y]) => y);
    const [left, top] = [Math.min(...xs), Math.min(...ys)];
    const [width, height] = [Math.max(...xs) - left, Math.max(...ys) - top];
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

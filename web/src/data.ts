// The runs that the page shows: tables of typed columns, decoded from one block of bytes.

/** What a run's rows are about, as written by `chappe_store::trace::about_json`. */
export interface About {
  scenario: string;
  system: string;
  variant: string;
  seed: number;
  end_ns: number;
  nodes: number;
  /** Transmitters that are no nodes; they have the numbers after those of the nodes. */
  interferers: number;
  /** What nodes are called; empty where numbers are enough. */
  names: string[];
  positions_m: [number, number][];
  noise_dbm: number | null;
  dropped: { frames: number; receptions: number; readings: number };
}

type Numbers = Uint8Array | Uint16Array | Uint32Array | Float32Array | Float64Array;

interface ColumnHead {
  name: string;
  type: "u8" | "u16" | "u32" | "f32" | "f64";
  offset: number;
  gaps: boolean;
  words?: string[];
}

interface TableHead {
  name: string;
  rows: number;
  columns: ColumnHead[];
}

interface RunHead {
  name: string;
  about: About;
  tables: TableHead[];
}

/** A figure of `chappe lab`, as `chappe_figures::json` writes it. */
export interface Figure {
  figure: string;
  title: string;
  rows: Point[];
  claims: { claim: { text: string; holds: boolean; goal: boolean }; unit: string; paper: number | null; ours: Summary | null; why: string | null }[];
  notes: string[];
}

export interface Summary {
  n: number;
  mean: number;
  ci95: number | null;
  min: number;
  max: number;
}

export interface Point {
  panel: string;
  /** What the panel shows; results of older versions have none of the next four. */
  panel_title?: string;
  drawn?: "bars" | "lines" | "cdf";
  axis?: string;
  /** The place as a number, if it is one. */
  x?: number | null;
  series: string;
  place: string;
  unit: string;
  paper: number | null;
  ours: Summary;
  /** Both ends of the 95 % interval. */
  interval?: [number, number] | null;
  bound: number | null;
  bound_worst_receiver: number | null;
}

/** One column: its numbers, and the words that they stand for. */
export class Column {
  readonly none: number;
  constructor(readonly values: Numbers, readonly words: string[], gaps: boolean) {
    const largest = values instanceof Uint8Array ? 255 : values instanceof Uint16Array ? 65535 : 4294967295;
    this.none = gaps ? largest : -1;
  }
  /** The number in a row; -1 where there is none. NaN stays NaN. */
  at(row: number): number {
    const value = this.values[row];
    return value === this.none ? -1 : value;
  }
  word(row: number): string {
    return this.words[this.values[row]] ?? "";
  }
}

export class Table {
  constructor(readonly rows: number, private readonly columns: Map<string, Column>) {}
  column(name: string): Column {
    return this.columns.get(name) ?? new Column(new Uint8Array(this.rows), [], false);
  }
}

export interface Run {
  name: string;
  about: About;
  frames: Table;
  receptions: Table;
  switches: Table;
  readings: Table;
  links: Table;
}

export interface Contents {
  title: string;
  runs: Run[];
  figures: Figure[];
  /** Whether the runs go on: the page asks again each second. */
  live: boolean;
  /** What could not be shown. */
  notes: string[];
}

const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };

/** Decodes: magic, length of the JSON head, the head, then the columns, each at a multiple of eight. */
export function decode(bytes: ArrayBuffer): Contents {
  const view = new DataView(bytes);
  if (view.byteLength < 12 || view.getUint32(0, true) !== 0x31767063) {
    throw new Error("these are no data of chappe view");
  }
  const length = view.getUint32(4, true);
  const text = new TextDecoder().decode(new Uint8Array(bytes, 8, length));
  const head = JSON.parse(text) as { title: string; runs: RunHead[]; figures: Figure[]; live?: boolean; notes?: string[] };
  const begin = Math.ceil((8 + length) / 8) * 8;
  const table = (run: RunHead, name: string): Table => {
    const found = run.tables.find((table) => table.name === name);
    const columns = new Map<string, Column>();
    for (const column of found?.columns ?? []) {
      const values = new ARRAYS[column.type](bytes, begin + column.offset, found!.rows);
      columns.set(column.name, new Column(values, column.words ?? [], column.gaps));
    }
    return new Table(found?.rows ?? 0, columns);
  };
  const runs = head.runs.map((run) => ({
    name: run.name,
    about: run.about,
    frames: table(run, "frames"),
    receptions: table(run, "receptions"),
    switches: table(run, "switches"),
    readings: table(run, "readings"),
    links: table(run, "links"),
  }));
  return { title: head.title, runs, figures: head.figures, live: head.live ?? false, notes: head.notes ?? [] };
}

/** Base64 as octets, piece by piece: a conversion at once would hold every letter as an object. */
function unpack(letters: string): Uint8Array<ArrayBuffer> {
  const padding = letters.endsWith("==") ? 2 : letters.endsWith("=") ? 1 : 0;
  const octets = new Uint8Array((letters.length / 4) * 3 - padding);
  const piece = 4 * 65536;
  for (let from = 0, to = 0; from < letters.length; from += piece) {
    const part = atob(letters.slice(from, from + piece));
    for (let place = 0; place < part.length; place++) octets[to++] = part.charCodeAt(place);
  }
  return octets;
}

/** The data: inside the page, or beside it on the server. */
export async function load(): Promise<Contents> {
  const inside = document.getElementById("data")?.textContent?.trim() ?? "";
  let packed: Uint8Array<ArrayBuffer>;
  if (inside.length > 0) {
    packed = unpack(inside);
  } else {
    const answer = await fetch("data" + location.search);
    if (!answer.ok) throw new Error(`the server answers ${answer.status} ${answer.statusText}`);
    packed = new Uint8Array(await answer.arrayBuffer());
  }
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return decode(await new Response(plain).arrayBuffer());
}

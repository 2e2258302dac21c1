// The page of `chappe view`: joins data, drawings, keys and buttons.

import { load, type Contents } from "./data";
import { blame, detail, escape, held } from "./detail";
import { figureCsv, figureHtml, figureSvg } from "./figures";
import { NetworkMap } from "./map";
import { bound, firstDifference, Model } from "./model";
import { Panels, type Mode } from "./panels";
import { csv, offer, saveDrawing, savePng, svg } from "./save";
import { isDark, setTheme } from "./theme";
import { Timeline, type Pick } from "./timeline";
import { cause, number, plain, time } from "./words";

/** How often a page of running daemons asks, in ms. */
const FOLLOW = 1000;
/** How much of a daemon's past is shown at first, in ns. */
const RECENT = 60e9;

/** That no daemon runs. */
function nobody(contents: Contents): string {
  return ["No daemon of Chappe runs on this machine, or none that this user may ask.", ...contents.notes].join(" ");
}

const SPEEDS = [1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10];

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found as T;
}

class Page {
  private model!: Model;
  private other: Model | null = null;
  private timeline!: Timeline;
  private second: Timeline | null = null;
  private map!: NetworkMap;
  private panels!: Panels;
  private cursor = 0;
  private node = 0;
  private selected: Pick | null = null;
  private playing = false;
  private speed = 3;
  private lastFrame = 0;
  private dirty = true;
  private told = "";
  private view: "run" | "compare" | "figures" = "run";
  private readonly models = new Map<number, Model>();
  /** What the last second of drawing took, for measurements: ms for each frame. */
  readonly drawn: number[] = [];

  constructor(private contents: Contents) {
    element("title").textContent = contents.title;
    element("title").title = contents.title;
    document.title = `${contents.title} · chappe view`;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    setTheme(new URLSearchParams(location.hash.slice(1)).get("theme") === "dark" || dark);
    this.fillChoices();
    this.listen();
    if (contents.runs.length > 0) this.open(0);
    else if (contents.live) this.say(nobody(contents));
    this.show(contents.runs.length > 0 || contents.live ? "run" : "figures");
    const hash = new URLSearchParams(location.hash.slice(1));
    if (hash.get("view") === "compare") this.show("compare");
    requestAnimationFrame((now) => this.turn(now));
    if (contents.live) element("word-down").textContent = "gone";
    if (contents.live) setTimeout(() => this.follow(), FOLLOW);
  }

  /** Asks for what has happened since, and goes on showing the same daemon, node and reading. A page that nobody sees does not ask. */
  private async follow(): Promise<void> {
    if (!document.hidden) {
      try {
        this.renew(await load());
      } catch (error) {
        this.say(`The server does not answer: ${error instanceof Error ? error.message : String(error)}. Trying again.`);
      }
    }
    setTimeout(() => this.follow(), FOLLOW);
  }

  private renew(contents: Contents): void {
    const shown = this.contents.runs[Number(element<HTMLSelectElement>("run").value)]?.name;
    const beside = this.contents.runs[Number(element<HTMLSelectElement>("other").value)]?.name;
    this.contents = contents;
    this.models.clear();
    if (contents.runs.length === 0) return this.say(nobody(contents));
    const place = Math.max(0, contents.runs.findIndex((run) => run.name === shown));
    const other = contents.runs.findIndex((run) => run.name === beside);
    const listed = [...element<HTMLSelectElement>("run").options].map((option) => option.text);
    if (listed.join("\n") !== contents.runs.map((run) => run.name).join("\n")) this.fillChoices();
    element<HTMLSelectElement>("run").value = String(place);
    if (other >= 0) element<HTMLSelectElement>("other").value = String(other);
    if (contents.runs[place].name === shown && this.timeline) this.continueRun(place);
    else this.open(place);
    if (this.second) {
      this.other = this.modelOf(Number(element<HTMLSelectElement>("other").value));
      this.second = new Timeline(element<HTMLCanvasElement>("timeline-2"), this.other);
    }
    this.dirty = true;
  }

  /** The same daemon a second later. The window moves on with its end, unless the user has moved it elsewhere. */
  private continueRun(place: number): void {
    const before = { model: this.model, window: this.timeline.window, top: this.timeline.top };
    const following = before.window.end >= before.model.end && this.cursor >= before.model.end;
    const named = this.panels.names().join(" ");
    this.model = this.modelOf(place);
    this.timeline = new Timeline(element<HTMLCanvasElement>("timeline"), this.model);
    const length = before.window.end - before.window.begin;
    const whole = before.window.begin <= 0 && length >= before.model.end;
    // The first minute grows; later minutes move.
    if (following) this.timeline.show(Infinity, whole ? Math.min(this.model.end, RECENT) : length);
    else this.timeline.show(before.window.begin, length);
    this.timeline.top = before.top;
    const { hovered } = this.map;
    this.map = new NetworkMap(element<HTMLCanvasElement>("map"), this.model);
    this.map.hovered = hovered;
    this.panels = new Panels(element<HTMLCanvasElement>("panel"), this.model);
    if (this.panels.names().join(" ") !== named) this.fillReadings(element<HTMLSelectElement>("reading").value);
    if (following) this.cursor = this.model.end;
    this.node = Math.min(this.node, this.model.nodes - 1);
    this.selected = this.selected && foundAgain(this.selected, before.model, this.model);
    this.say(this.summary());
  }

  private fillChoices(): void {
    const { runs, figures } = this.contents;
    const options = runs.map((run, place) => `<option value="${place}">${escape(run.name)}</option>`).join("");
    element("run").innerHTML = options;
    element("other").innerHTML = options;
    if (runs.length > 1) element<HTMLSelectElement>("other").value = "1";
    element<HTMLButtonElement>("tab-run").disabled = runs.length === 0;
    element<HTMLButtonElement>("tab-compare").disabled = runs.length < 2;
    element<HTMLButtonElement>("tab-figures").disabled = figures.length === 0;
    const speeds = SPEEDS.map((speed, place) => {
      const name = speed >= 1 ? `${speed} ×` : speed >= 1e-3 ? `1/${Math.round(1 / speed)}` : `1/${Math.round(1 / speed).toLocaleString("en")}`;
      return `<option value="${place}">${name}</option>`;
    });
    element("speed").innerHTML = speeds.join("");
    element<HTMLSelectElement>("speed").value = String(this.speed);
    element("view-figures").innerHTML = figures.map(figureHtml).join("");
  }

  private modelOf(place: number): Model {
    let model = this.models.get(place);
    if (!model) {
      model = new Model(this.contents.runs[place]);
      this.models.set(place, model);
    }
    return model;
  }

  private open(place: number): void {
    this.model = this.modelOf(place);
    const { model } = this;
    this.timeline = new Timeline(element<HTMLCanvasElement>("timeline"), model);
    this.map = new NetworkMap(element<HTMLCanvasElement>("map"), model);
    this.panels = new Panels(element<HTMLCanvasElement>("panel"), model);
    [this.cursor, this.node, this.selected] = [0, 0, null];
    const first = this.fillReadings();
    this.node = Math.max(0, model.readings.firstWith(first));
    this.say(this.summary());
    if (this.contents.live) this.cursor = model.end;
    const { dropped } = model.run.about;
    if (dropped.receptions + dropped.frames > 0) this.skipToFirst();
    this.select(null);
  }

  /** Lists the readings that there are and chooses one: `wanted`, or the most telling. */
  private fillReadings(wanted?: string): string {
    const names = this.panels.names();
    const packets = this.panels.hasPackets();
    const options = names.map((name) => `<option value="${escape(name)}">${escape(plain(name))}</option>`);
    if (packets) options.unshift(`<option value="packets">packets by number</option>`);
    element("reading").innerHTML = options.join("") || `<option value="">no readings</option>`;
    const telling = ["rank", "queue", "congestion_window", "bodies", "goodput_out_bps", "batches_done", "data_frames_per_s"];
    const usual = packets && !names.includes("queue") ? "packets" : (telling.find((name) => names.includes(name)) ?? names[0] ?? "");
    const first = wanted && names.includes(wanted) ? wanted : usual;
    element<HTMLSelectElement>("reading").value = first;
    return first;
  }

  /** What is shown, in a sentence. */
  private summary(): string {
    const { about, frames, receptions } = this.model.run;
    if (this.contents.live) {
      const here = this.model.presentAt(this.model.end);
      const notes = this.contents.notes.map((note) => `; ${note}`).join("");
      const newest = frames.rows > 0 ? `, the newest ${number(frames.rows)} frames` : "";
      return `${about.scenario}: ${here === 0 ? "does not answer any more" : `${here} of ${about.nodes} nodes`}, ${number(this.panels.names().length)} values${newest}, asked each second for ${time(this.model.end, 1e9)}${notes}`;
    }
    const lost = about.dropped.receptions + about.dropped.frames;
    const others = about.interferers > 0 ? `, ${about.interferers} interferer${about.interferers > 1 ? "s" : ""}` : "";
    return (
      `${about.system}, ${about.variant}, seed ${about.seed}: ${about.nodes} nodes${others}, ${number(frames.rows)} frames, ` +
      `${number(receptions.rows)} receptions and losses in ${time(this.model.end, 1e7)}` +
      (lost > 0 ? `; the ring dropped the ${number(lost)} oldest (--record-all keeps them)` : "")
    );
  }

  /** The ring may have lost the beginning: the window starts where events do. */
  private skipToFirst(): void {
    const start = this.model.run.receptions.column("start_ns");
    if (this.model.run.receptions.rows === 0) return;
    const first = start.at(0);
    this.timeline.show(first, this.model.end - first);
    this.cursor = first;
  }

  private openOther(place: number): void {
    this.other = this.modelOf(place);
    this.second = new Timeline(element<HTMLCanvasElement>("timeline-2"), this.other);
    element("second-title").textContent = this.contents.runs[place].name;
    this.toDifference();
  }

  private toDifference(): void {
    if (!this.other || !this.second) return;
    const found = firstDifference(this.model, this.other);
    if (!found) {
      this.say("The two runs sent the same frames at the same times.");
      return;
    }
    const length = Math.max(2e7, this.timeline.window.end - this.timeline.window.begin > 5e7 ? 2e7 : 0);
    this.timeline.show(found.at - length / 2, length);
    this.move(found.at);
    const of = (model: Model, row: number) =>
      row < 0 ? "nothing more" : `${plain(model.run.frames.column("kind").word(row))} of ${model.name(model.run.frames.column("node").at(row))}, ${model.run.frames.column("octets").at(row)} octets, at ${time(model.run.frames.column("start_ns").at(row), 1000)}`;
    if (found.rows[0] >= 0) this.choose({ kind: "frame", row: found.rows[0] }, false);
    if (found.rows[1] >= 0) this.second.selected = { kind: "frame", row: found.rows[1] };
    this.say(`First difference at ${time(found.at, 1000)}: here ${of(this.model, found.rows[0])}; there ${of(this.other, found.rows[1])}.`);
  }

  private show(view: "run" | "compare" | "figures"): void {
    if (view !== "figures" && this.contents.runs.length === 0 && !this.contents.live) return;
    if (view === "compare" && this.contents.runs.length < 2) return;
    if (view === "figures" && this.contents.figures.length === 0 && this.contents.runs.length > 0) return;
    this.view = view;
    for (const name of ["run", "compare", "figures"]) element(`tab-${name}`).setAttribute("aria-pressed", String(name === view));
    element("view-run").hidden = view === "figures";
    element("view-figures").hidden = view !== "figures";
    element("second").hidden = view !== "compare";
    element("other-label").hidden = view !== "compare";
    if (view === "compare") this.openOther(Number(element<HTMLSelectElement>("other").value));
    else this.second = null;
    // What was said of another view would stand over this one.
    if (view === "figures") this.say(figuresSaid(this.contents.figures));
    else if (view === "run" && this.contents.runs.length > 0) this.say(this.summary());
    this.dirty = true;
  }

  private say(text: string): void {
    element("message").textContent = text;
  }

  private move(at: number): void {
    this.cursor = Math.max(0, Math.min(this.model.end, at));
    this.dirty = true;
  }

  private setNode(node: number): void {
    this.node = Math.max(0, Math.min(this.model.nodes - 1, node));
    this.timeline.scrollTo(this.node);
    this.dirty = true;
  }

  private select(pick: Pick | null): void {
    this.selected = pick;
    this.tell(detail(this.model, pick));
    this.dirty = true;
  }

  /** Replaces the text beside the map, unless it is the same: its buttons keep the focus. */
  private tell(text: string): void {
    if (text === this.told) return;
    this.told = text;
    element("detail").innerHTML = text;
  }

  /** Selects a frame or reception and brings it into view. */
  private choose(pick: Pick, zoom = true): void {
    const { frames, receptions } = this.model.run;
    const [table, column] = pick.kind === "frame" ? [frames, "node"] : [receptions, "node"];
    const start = table.column("start_ns").at(pick.row);
    const length = this.timeline.window.end - this.timeline.window.begin;
    this.move(start);
    this.timeline.reveal(start, table.column(column).at(pick.row), zoom ? Math.min(length, 5e7) : length);
    this.setNode(table.column(column).at(pick.row));
    this.select(pick);
  }

  /** The next reception after the cursor, or the previous one before it, that `accepts`. */
  private seek(accepts: (row: number) => boolean, forward: boolean, what: string): boolean {
    const rows = this.model.lostRows;
    const start = this.model.run.receptions.column("start_ns");
    const here = this.selected?.kind === "reception" ? this.selected.row : -1;
    let place = bound(rows, (row) => start.at(row) < this.cursor || (here >= 0 && start.at(row) === this.cursor && row <= here));
    if (!forward) place = bound(rows, (row) => start.at(row) < this.cursor || (here >= 0 && start.at(row) === this.cursor && row < here)) - 1;
    for (; place >= 0 && place < rows.length; place += forward ? 1 : -1) {
      if (!accepts(rows[place])) continue;
      const row = rows[place];
      this.choose({ kind: "reception", row });
      this.say(`Lost at ${this.model.name(this.model.run.receptions.column("node").at(row))}: ${cause(this.model.run.receptions.column("outcome").word(row))}, by ${blame(this.model, row)}.`);
      return true;
    }
    this.say(`No ${forward ? "later" : "earlier"} ${what}.`);
    return false;
  }

  private nextFrame(accepts: (row: number) => boolean, what: string): boolean {
    const start = this.model.run.frames.column("start_ns");
    for (let row = 0; row < this.model.run.frames.rows; row++) {
      if (start.at(row) <= this.cursor || !accepts(row)) continue;
      this.choose({ kind: "frame", row });
      return true;
    }
    this.say(`No later ${what}.`);
    return false;
  }

  /** Finds what was typed: a node, a time, a cause of loss, or a kind of frame. */
  private find(text: string): void {
    const query = text.trim().toLowerCase();
    if (!this.model) return;
    const named = this.model.run.about.names.findIndex((name) => name.toLowerCase() === query);
    if (query !== "" && named >= 0) {
      this.setNode(named);
      return this.say(`Node ${named}, ${this.model.name(named)}.`);
    }
    const node = /^(?:node\s*|n)(\d+)$/.exec(query);
    const moment = /^(\d+(?:\.\d+)?)\s*(s|ms|us|µs)$/.exec(query);
    const { frames, receptions } = this.model.run;
    if (query === "") return;
    if (node) {
      if (Number(node[1]) >= this.model.nodes) return this.say(`There are nodes 0 to ${this.model.nodes - 1}.`);
      this.setNode(Number(node[1]));
      return this.say(`${this.model.name(Number(node[1]))}.`);
    }
    if (moment) {
      const unit = { s: 1e9, ms: 1e6, us: 1e3, µs: 1e3 }[moment[2]] ?? 1;
      this.move(Number(moment[1]) * unit);
      this.timeline.reveal(this.cursor, this.node);
      return;
    }
    const outcome = receptions.column("outcome").words.find((word) => word !== "received" && plain(word).includes(query));
    if (outcome) {
      this.seek((row) => receptions.column("outcome").word(row) === outcome, true, `loss by ${plain(outcome)}`);
      return;
    }
    const kind = frames.column("kind").words.find((word) => plain(word).includes(query));
    if (kind) {
      this.nextFrame((row) => frames.column("kind").word(row) === kind, `${kind} frame`);
      return;
    }
    const known = [...new Set([...receptions.column("outcome").words, ...frames.column("kind").words])].map(plain);
    this.say(`Nothing is called “${query}”. Known: node 3, 1.25 s, ${known.join(", ")}.`);
  }

  private listen(): void {
    const click = (id: string, act: () => void) =>
      element(id).addEventListener("click", () => {
        // While no daemon runs there is nothing to play or to zoom.
        if (this.model || ["theme", "help"].includes(id)) act();
      });
    click("tab-run", () => this.show("run"));
    click("tab-compare", () => this.show("compare"));
    click("tab-figures", () => this.show("figures"));
    click("play", () => this.toggle());
    click("in", () => this.zoom(0.5));
    click("out", () => this.zoom(2));
    click("all", () => this.whole());
    click("next", () => this.seek(() => true, true, "loss"));
    click("previous", () => this.seek(() => true, false, "loss"));
    click("theme", () => this.turnTheme());
    click("help", () => element<HTMLDialogElement>("keys").showModal());
    element("run").addEventListener("change", () => {
      this.open(Number(element<HTMLSelectElement>("run").value));
      if (this.view === "compare") this.show("compare");
    });
    element("other").addEventListener("change", () => this.openOther(Number(element<HTMLSelectElement>("other").value)));
    element("speed").addEventListener("change", () => (this.speed = Number(element<HTMLSelectElement>("speed").value)));
    for (const id of ["reading", "mode"]) element(id).addEventListener("change", () => (this.dirty = true));
    element("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.find(element<HTMLInputElement>("query").value);
    });
    element("save").addEventListener("change", () => this.save());
    element("view-figures").addEventListener("click", (event) => this.saveFigure(event));
    element("detail").addEventListener("click", (event) => {
      const { frame, reception } = (event.target as HTMLElement).dataset;
      if (frame !== undefined) this.choose({ kind: "frame", row: Number(frame) });
      if (reception !== undefined) this.choose({ kind: "reception", row: Number(reception) });
    });
    this.listenCanvas("timeline", () => this.timeline);
    this.listenCanvas("timeline-2", () => this.second);
    element("map").addEventListener("click", (event) => {
      const node = this.map?.nodeAt(event.offsetX, event.offsetY);
      if (typeof node === "number") this.setNode(node);
    });
    const point = (node: number | null) => {
      if (!this.map || this.map.hovered === node) return;
      this.map.hovered = node;
      this.dirty = true;
    };
    element("map").addEventListener("pointermove", (event) => point(this.map?.nodeAt(event.offsetX, event.offsetY) ?? null));
    element("map").addEventListener("pointerleave", () => point(null));
    document.addEventListener("keydown", (event) => this.key(event));
    // A canvas may change its size though the page keeps its own, for example when the header needs one line less.
    const resized = new ResizeObserver(() => (this.dirty = true));
    for (const canvas of document.querySelectorAll("canvas")) resized.observe(canvas);
  }

  private listenCanvas(id: string, which: () => Timeline | null): void {
    const canvas = element<HTMLCanvasElement>(id);
    let from: { x: number; moved: boolean } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.model) return;
      from = { x: event.offsetX, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      const by = from.x - event.offsetX;
      if (Math.abs(by) < 3 && !from.moved) return;
      this.timeline.pan(by / (canvas.clientWidth - 64));
      from = { x: event.offsetX, moved: true };
      this.dirty = true;
    });
    canvas.addEventListener("pointerup", (event) => {
      const timeline = which();
      if (from && !from.moved && timeline) this.click(timeline, event.offsetX, event.offsetY);
      from = null;
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const timeline = which();
      if (!timeline) return;
      if (event.shiftKey) timeline.scroll(event.deltaY / 40);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.timeline.pan(event.deltaX / 800);
      else this.timeline.zoom(event.deltaY > 0 ? 1.25 : 0.8, timeline.timeAt(event.offsetX));
      this.dirty = true;
    }, { passive: false });
  }

  private click(timeline: Timeline, x: number, y: number): void {
    this.move(timeline.timeAt(x));
    const pick = timeline.pickAt(x, y);
    if (timeline === this.timeline) {
      this.setNode(timeline.nodeAt(y));
      this.select(pick);
    } else {
      timeline.selected = pick;
      if (this.other) element("detail").innerHTML = detail(this.other, pick);
    }
    if (pick?.kind === "reception" && this.model.stateOf(pick.row) === 16 && timeline === this.timeline) {
      const { receptions } = this.model.run;
      this.say(`Lost at ${this.model.name(receptions.column("node").at(pick.row))}: ${cause(receptions.column("outcome").word(pick.row))}, by ${blame(this.model, pick.row)}.`);
    }
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.tagName === "INPUT" || target.closest("dialog")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const onControl = target.tagName === "SELECT" || target.tagName === "BUTTON" || target.tagName === "SUMMARY";
    // Arrows and space belong to the control that has the focus.
    if (onControl && (event.key.startsWith("Arrow") || event.key === " " || event.key === "Enter")) return;
    if (this.view === "figures" && event.key.startsWith("Arrow")) return;
    const keys: Record<string, () => void> = {
      " ": () => this.toggle(),
      "[": () => this.faster(-1),
      "]": () => this.faster(1),
      ArrowLeft: () => this.step(-0.1),
      ArrowRight: () => this.step(0.1),
      ArrowUp: () => this.setNode(this.node - 1),
      ArrowDown: () => this.setNode(this.node + 1),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      "0": () => this.whole(),
      n: () => this.seek(() => true, true, "loss"),
      p: () => this.seek(() => true, false, "loss"),
      f: () => this.nextFrame((row) => this.model.run.frames.column("node").at(row) === this.node, `frame of ${this.model.name(this.node)}`),
      m: () => this.turnMode(),
      x: () => (this.view === "compare" ? this.toDifference() : this.show("compare")),
      d: () => this.turnTheme(),
      "/": () => element("query").focus(),
      "?": () => element<HTMLDialogElement>("keys").showModal(),
      "1": () => this.show("run"),
      "2": () => this.show("compare"),
      "3": () => this.show("figures"),
    };
    const act = keys[event.key];
    if (!act || (this.contents.runs.length === 0 && !"d?3".includes(event.key))) return;
    event.preventDefault();
    act();
    this.dirty = true;
  }

  private toggle(): void {
    if (this.cursor >= this.model.end) this.cursor = 0;
    this.playing = !this.playing;
    element("play").textContent = this.playing ? "Stop" : "Play";
    this.dirty = true;
  }

  private faster(by: number): void {
    this.speed = Math.max(0, Math.min(SPEEDS.length - 1, this.speed + by));
    element<HTMLSelectElement>("speed").value = String(this.speed);
  }

  private step(share: number): void {
    const { begin, end } = this.timeline.window;
    this.move(this.cursor + share * (end - begin));
    if (this.cursor < this.timeline.window.begin || this.cursor > this.timeline.window.end) this.timeline.pan(share);
  }

  private zoom(factor: number): void {
    const { begin, end } = this.timeline.window;
    this.timeline.zoom(factor, this.cursor >= begin && this.cursor <= end ? this.cursor : undefined);
    this.dirty = true;
  }

  private whole(): void {
    this.timeline.show(0, this.model.end);
    this.dirty = true;
  }

  private turnTheme(): void {
    setTheme(!isDark());
    element("view-figures").innerHTML = this.contents.figures.map(figureHtml).join("");
    this.dirty = true;
  }

  private turnMode(): void {
    const mode = element<HTMLSelectElement>("mode");
    mode.value = mode.value === "time" ? "moment" : "time";
    this.dirty = true;
  }

  private save(): void {
    const choice = element<HTMLSelectElement>("save");
    const [what, shown] = [choice.value, this.timeline?.window];
    choice.value = "";
    if (!shown) return this.say("There is no run to save.");
    const name = `seed-${this.model.run.about.seed}`;
    if (what === "csv") offer(`${name}.csv`, "text/csv", csv(this.model, shown));
    if (what === "png") savePng(element<HTMLCanvasElement>("timeline"), `${name}.png`);
    if (what === "map") savePng(element<HTMLCanvasElement>("map"), `${name}-map.png`);
    if (what === "panel") savePng(element<HTMLCanvasElement>("panel"), `${name}-panel.png`);
    if (what === "svg") {
      const text = svg(this.model, shown);
      if (text) offer(`${name}.svg`, "image/svg+xml", text);
      else this.say("Too much for one SVG: zoom in first, or take the PNG.");
    }
  }

  private saveFigure(event: Event): void {
    const wanted = (event.target as HTMLElement).dataset.save;
    if (!wanted) return;
    const [place, panel, kind] = wanted.split("/");
    const figure = this.contents.figures[Number(place)];
    const rows = figure.rows.filter((row) => row.panel === panel);
    const name = `${figure.figure}-${panel}`;
    if (kind === "svg") offer(`${name}.svg`, "image/svg+xml", figureSvg(rows));
    else if (kind === "png") void saveDrawing(figureSvg(rows), `${name}.png`);
    else offer(`${name}.csv`, "text/csv", figureCsv(rows));
  }

  private turn(now: number): void {
    const passed = Math.min(100, now - this.lastFrame);
    this.lastFrame = now;
    if (this.playing) {
      const length = this.timeline.window.end - this.timeline.window.begin;
      this.move(this.cursor + passed * 1e6 * SPEEDS[this.speed]);
      // The window follows before the cursor leaves it.
      if (this.cursor > this.timeline.window.begin + 0.8 * length || this.cursor < this.timeline.window.begin) {
        this.timeline.show(this.cursor - 0.2 * length, length);
      }
      if (this.cursor >= this.model.end) this.toggle();
    }
    if (this.dirty && this.model && this.view !== "figures") {
      const begin = performance.now();
      this.draw();
      this.drawn.push(performance.now() - begin);
      if (this.drawn.length > 600) this.drawn.shift();
    }
    this.dirty = false;
    requestAnimationFrame((next) => this.turn(next));
  }

  private draw(): void {
    Object.assign(this.timeline, { cursor: this.cursor, node: this.node, selected: this.selected });
    this.timeline.draw();
    if (this.second) {
      Object.assign(this.second, { cursor: this.cursor, node: this.node, window: this.timeline.window, top: this.timeline.top });
      // Its canvas is lower by its heading, so the chosen lane may need a scroll of its own.
      this.second.scrollTo(this.node);
      this.second.draw();
    }
    Object.assign(this.map, { node: this.node, at: this.cursor });
    this.map.draw();
    const reading = element<HTMLSelectElement>("reading").value;
    const mode: Mode = reading === "packets" ? "packets" : (element<HTMLSelectElement>("mode").value as Mode);
    this.panels.draw(mode, reading, this.node, this.cursor, this.timeline.window);
    element<HTMLSelectElement>("mode").disabled = reading === "packets";
    const meaning = reading === "packets" ? "Each frame by its packet number; the colour is the stage or the node." : reading ? `${this.panels.meaning(reading)} ${mode === "time" ? `Of ${this.model.name(this.node)}.` : ""}` : "This system shows no readings.";
    const meant = element("meaning");
    // Setting a text lays the page out anew, also if it is the same.
    if (meant.textContent !== meaning) meant.textContent = meaning;
    if (this.contents.live && !this.selected) this.tell(held(this.model, this.node, this.cursor));
    const step = (this.timeline.window.end - this.timeline.window.begin) / 1000;
    element("clock").textContent = time(this.cursor, step);
    element("timeline").setAttribute("aria-label", `A lane for each of ${this.model.nodes} nodes, from ${time(this.timeline.window.begin, step)} to ${time(this.timeline.window.end, step)}; ${this.model.name(this.node)} is chosen`);
  }
}

/** What was selected, in the tables of a second later; null if they do not hold it any more. */
function foundAgain(selected: Pick, before: Model, now: Model): Pick | null {
  const names = selected.kind === "frame" ? ["node", "number", "start_ns"] : ["node", "from", "start_ns"];
  const columns = (model: Model) => names.map((name) => (selected.kind === "frame" ? model.run.frames : model.run.receptions).column(name));
  const wanted = columns(before).map((column) => column.at(selected.row));
  const there = columns(now);
  const rows = selected.kind === "frame" ? now.run.frames.rows : now.run.receptions.rows;
  for (let row = 0; row < rows; row++) {
    if (there.every((column, place) => column.at(row) === wanted[place])) return { kind: selected.kind, row };
  }
  return null;
}

/** What the figures are, in a sentence. */
function figuresSaid(figures: Contents["figures"]): string {
  const claims = figures.flatMap((figure) => figure.claims.filter((one) => !one.claim.goal));
  const held = claims.filter((one) => one.claim.holds).length;
  const titles = figures.length === 1 ? figures[0].title : `${figures.length} figures`;
  return claims.length > 0 ? `${titles}; ${held} of ${claims.length} claims of the paper hold` : titles;
}

declare global {
  interface Window {
    chappe?: Page;
  }
}

load().then(
  (contents) => {
    window.chappe = new Page(contents);
    document.body.dataset.ready = "true";
  },
  (error: unknown) => {
    element("message").textContent = `Cannot show this: ${error instanceof Error ? error.message : String(error)}`;
    document.body.dataset.ready = "failed";
  },
);

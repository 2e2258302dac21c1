// What is on the screen, as files: CSV of the events, SVG of the timeline, PNG of a canvas.

import { escape } from "./detail";
import { bound, Model } from "./model";
import { colours } from "./theme";
import { niceStep, type Window } from "./timeline";
import { time } from "./words";

/** Rectangles in an SVG at most: beyond that a drawing program gives up, and the PNG is better. */
const MARKS = 50_000;

export function offer(name: string, type: string, content: BlobPart): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function savePng(canvas: HTMLCanvasElement, name: string): void {
  canvas.toBlob((blob) => blob && offer(name, "image/png", blob), "image/png");
}

/** A drawing as a PNG of twice its size, which screens and slides show sharply. */
export async function saveDrawing(drawing: string, name: string): Promise<void> {
  const image = new Image();
  const box = new DOMParser().parseFromString(drawing, "image/svg+xml").documentElement.getAttribute("viewBox") ?? "0 0 800 300";
  const [width, height] = box.split(" ").slice(2).map((side) => 2 * Number(side));
  // Without a size of its own an SVG is drawn at 300 by 150 in some browsers.
  const sized = drawing.replace("<svg ", `<svg width="${width}" height="${height}" `);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(sized)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  canvas.getContext("2d")?.drawImage(image, 0, 0);
  savePng(canvas, name);
}

/** A row for each reception that begins in the window. */
export function csv(model: Model, shown: Window): string {
  const { receptions, frames } = model.run;
  const names = ["node", "from", "start_ns", "known_ns", "power_dbm", "sinr_db"];
  const columns = names.map((name) => receptions.column(name));
  const [frame, culprit, outcome] = ["frame", "culprit", "outcome"].map((name) => receptions.column(name));
  const identity = (row: number) => (row < 0 ? "," : `${frames.column("node").at(row)},${frames.column("number").at(row)}`);
  const lines = [`${names.join(",")},outcome,kind,sent_by,frame_number,lost_by_node,lost_by_frame`];
  for (let row = 0; row < receptions.rows; row++) {
    const start = receptions.column("start_ns").at(row);
    if (start < shown.begin || start > shown.end) continue;
    const values = columns.map((column) => (Number.isNaN(column.at(row)) ? "" : column.at(row)));
    const sent = frame.at(row);
    const kind = sent < 0 ? "" : frames.column("kind").word(sent);
    lines.push(`${values.join(",")},${outcome.word(row)},${kind},${identity(sent)},${identity(culprit.at(row))}`);
  }
  return lines.join("\n") + "\n";
}

/** The lanes of a window as a drawing; `null` if it would hold too much. */
export function svg(model: Model, shown: Window): string | null {
  const palette = colours();
  const [left, top, width, lane] = [70, 24, 1200, 18];
  const height = top + model.nodes * lane + 8;
  const x = (at: number) => left + ((Math.min(Math.max(at, shown.begin), shown.end) - shown.begin) / (shown.end - shown.begin)) * width;
  const marks: string[] = [];
  const mark = (node: number, from: number, to: number, colour: string, low: boolean) => {
    const y = top + node * lane + (low ? 12 : 0);
    const wide = Math.max(0.3, x(to) - x(from));
    marks.push(`<rect x="${x(from).toFixed(2)}" y="${y}" width="${wide.toFixed(2)}" height="${low ? 4 : 11}" fill="${colour}"/>`);
  };
  const { frames } = model.run;
  const [start, airtime] = [frames.column("start_ns"), frames.column("airtime_ns")];
  for (let node = 0; node < model.nodes; node++) {
    const { sent, heard, off, down } = model.lanes[node];
    for (let pair = 0; pair < off.length; pair += 2) {
      if (off[pair + 1] >= shown.begin && off[pair] <= shown.end) {
        mark(node, off[pair], off[pair + 1], down[pair / 2] ? palette.down : palette.asleep, false);
      }
    }
    for (let place = bound(heard, (row) => model.startOf(row) < shown.begin); place < heard.length; place++) {
      const row = heard[place];
      if (model.startOf(row) > shown.end || marks.length > MARKS) break;
      if (model.isReceived(row)) {
        mark(node, model.startOf(row), model.endOf(row), model.isAddressed(row) ? palette.receives : palette.overhears, false);
      } else if (model.isNotable(row)) mark(node, model.startOf(row), model.endOf(row), palette.lost, true);
    }
    for (let place = bound(sent, (row) => start.at(row) < shown.begin); place < sent.length; place++) {
      const row = sent[place];
      if (start.at(row) > shown.end || marks.length > MARKS) break;
      mark(node, start.at(row), start.at(row) + airtime.at(row), palette.sends, false);
    }
    if (marks.length > MARKS) return null;
    marks.push(`<text x="${left - 8}" y="${top + node * lane + 9}" text-anchor="end">${escape(model.name(node))}</text>`);
  }
  const step = niceStep((shown.end - shown.begin) / 8);
  for (let at = Math.ceil(shown.begin / step) * step; at <= shown.end; at += step) {
    marks.push(`<text x="${x(at).toFixed(1)}" y="14">${time(at, step)}</text>`);
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + width + 10} ${height}" font-family="sans-serif" font-size="10" fill="${palette.text}"><rect width="100%" height="100%" fill="${palette.ground}"/>${marks.join("")}</svg>\n`;
}

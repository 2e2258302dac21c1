// Figures of `chappe lab`: our values with their intervals, the paper's marks, the bound. Drawn as SVG, so that what is saved
// is what is seen.

import type { Figure, Point } from "./data";
import { escape } from "./detail";
import { colours } from "./theme";
import { niceStep } from "./timeline";
import { number } from "./words";

const [LEFT, TOP, WIDTH, HEIGHT] = [62, 14, 760, 240];

/** Values that differ by this much, all above zero, get a logarithmic scale when they are drawn as lines; as in `chappe_figures`. */
const LOG_FROM = 50;

/** Both ends of a value's 95 % interval. */
export function intervalOf(row: Point): [number, number] | null {
  if (row.interval) return row.interval;
  const { mean, ci95 } = row.ours;
  return row.interval === undefined && ci95 !== null ? [mean - ci95, mean + ci95] : null;
}

interface Scale {
  y: (value: number) => number;
  ticks: number[];
}

/** From zero, or from the lowest value below it; logarithmic where asked for. */
function scaleOf(rows: Point[], log: boolean): Scale {
  const values = rows
    .flatMap((row) => [row.ours.mean, ...(intervalOf(row) ?? []), row.paper, row.bound])
    .filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  const [least, most] = [Math.min(0, ...values), Math.max(1e-9, ...values)];
  const above = values.filter((value) => value > 0);
  const smallest = Math.min(...above);
  if (log && above.length === values.length && most / smallest >= LOG_FROM) {
    const [from, to] = [Math.floor(Math.log10(smallest)), Math.ceil(Math.log10(most))];
    const ticks = Array.from({ length: to - from + 1 }, (_, place) => 10 ** (from + place));
    return { ticks, y: (value) => TOP + HEIGHT - ((Math.log10(Math.max(value, 10 ** from)) - from) / Math.max(1, to - from)) * HEIGHT };
  }
  const step = niceStep((most - least) / 5);
  const [low, high] = [Math.floor(least / step) * step, Math.max(most, step)];
  const ticks: number[] = [];
  for (let value = low; value <= high; value += step) ticks.push(Number(value.toPrecision(6)));
  return { ticks, y: (value) => TOP + HEIGHT - ((Math.max(low, Math.min(value, high)) - low) / (high - low)) * HEIGHT };
}

/** Where each place stands: to scale where lines are drawn over numbers, at equal distances elsewhere. */
function placesOf(rows: Point[], places: string[], lines: boolean): (place: string) => number {
  const xs = new Map(rows.map((row) => [row.place, row.x ?? null]));
  const numbers = [...xs.values()].filter((x): x is number => x !== null);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (lines && numbers.length === xs.size && high > low) {
    return (place) => LEFT + 20 + ((xs.get(place)! - low) / (high - low)) * (WIDTH - 40);
  }
  return (place) => LEFT + ((places.indexOf(place) + 0.5) / places.length) * WIDTH;
}

function whisker(x: number, low: number, up: number, colour: string): string {
  return `<path d="M${x} ${low}V${up}M${x - 3} ${up}h6M${x - 3} ${low}h6" stroke="${colour}" fill="none"/>`;
}

export function figureSvg(rows: Point[]): string {
  const palette = colours();
  const places = [...new Set(rows.map((row) => row.place))];
  const series = [...new Set(rows.map((row) => row.series))];
  const lines = rows[0]?.drawn === "lines";
  const { y, ticks } = scaleOf(rows, lines);
  const xOf = placesOf(rows, places, lines);
  const slot = WIDTH / places.length;
  const bar = Math.min(46, (slot * 0.8) / series.length);
  const marks: string[] = [];
  for (const value of ticks) {
    marks.push(`<line x1="${LEFT}" x2="${LEFT + WIDTH}" y1="${y(value)}" y2="${y(value)}" stroke="${value === 0 ? palette.quiet : palette.line}"/>`);
    marks.push(`<text x="${LEFT - 6}" y="${y(value) + 4}" text-anchor="end">${number(value)}</text>`);
  }
  // With many places only some of their names fit.
  const every = Math.max(1, Math.ceil((places.length * 46) / WIDTH));
  places.forEach((place, column) => {
    if (column % every === 0) marks.push(`<text x="${xOf(place)}" y="${TOP + HEIGHT + 16}" text-anchor="middle">${escape(short(place, slot * every))}</text>`);
  });
  series.forEach((name, order) => {
    const colour = palette.series[order % palette.series.length];
    const own = rows.filter((row) => row.series === name && row.ours.n > 0 && Number.isFinite(row.ours.mean) && row.ours.mean !== null);
    // Lines are moved apart a little, so that their whiskers do not hide one another.
    const shift = lines ? (order - (series.length - 1) / 2) * 4 : (order - (series.length - 1) / 2) * bar;
    if (lines) {
      const path = own.map((row) => `${xOf(row.place) + shift} ${y(row.ours.mean)}`).join("L");
      marks.push(`<path d="M${path}" stroke="${colour}" stroke-width="2" fill="none"/>`);
    }
    for (const row of own) {
      const centre = xOf(row.place) + shift;
      const title = `<title>${escape(tip(row))}</title>`;
      const [from, to] = [y(0), y(row.ours.mean)];
      marks.push(
        lines
          ? `<circle cx="${centre}" cy="${to}" r="3.5" fill="${colour}">${title}</circle>`
          : `<rect x="${centre - bar / 2 + 0.5}" y="${Math.min(from, to)}" width="${Math.max(1, bar - 1)}" height="${Math.abs(from - to)}" fill="${colour}">${title}</rect>`,
      );
      const interval = intervalOf(row);
      if (interval) marks.push(whisker(centre, y(interval[0]), y(interval[1]), lines ? colour : palette.text));
      if (row.paper !== null) {
        marks.push(`<path d="M${centre} ${y(row.paper) - 5}l5 5l-5 5l-5 -5z" fill="${palette.ground}" stroke="${palette.text}" stroke-width="1.5"><title>paper: ${number(row.paper)}</title></path>`);
      }
      if (row.bound !== null) {
        marks.push(`<path d="M${centre - bar / 2} ${y(row.bound)}h${bar}" stroke="${palette.lost}" stroke-width="2" stroke-dasharray="4 2"><title>bound: ${number(row.bound)}</title></path>`);
      }
    }
  });
  const axis = rows[0]?.axis ?? "";
  if (axis) marks.push(`<text x="${LEFT + WIDTH}" y="${TOP + HEIGHT + 32}" text-anchor="end">${escape(axis)}</text>`);
  const height = TOP + HEIGHT + (axis ? 40 : 26);
  return `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${escape(series.join(", "))} by ${escape(axis || "place")}" viewBox="0 0 ${LEFT + WIDTH + 10} ${height}" font-family="system-ui, sans-serif" font-size="11" fill="${palette.text}"><rect width="100%" height="100%" fill="${palette.ground}"/>${marks.join("")}</svg>`;
}

function short(text: string, room: number): string {
  const letters = Math.max(3, Math.floor(room / 6.5));
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
}

function tip(row: Point): string {
  const { mean, n } = row.ours;
  const interval = intervalOf(row);
  return `${row.series}${row.place ? `, ${row.place}` : ""}: ${number(mean)}${interval ? ` (${number(interval[0])} to ${number(interval[1])})` : ""} ${row.unit} (n=${n})`;
}

/** A figure with its panels, key, claims and the values as a table. */
export function figureHtml(figure: Figure, place: number): string {
  const palette = colours();
  const panels = [...new Set(figure.rows.map((row) => row.panel))];
  const key = (rows: Point[]) =>
    [...new Set(rows.map((row) => row.series))]
      .map((name, order) => `<span class="key"><i style="background:${palette.series[order % palette.series.length]}"></i>${escape(name)}</span>`)
      .join("") +
    (rows.some((row) => row.paper !== null) ? `<span class="key">◇ paper</span>` : "") +
    (rows.some((row) => row.bound !== null) ? `<span class="key"><b class="bad">┅</b> bound</span>` : "");
  const drawn = panels.map((panel) => {
    const rows = figure.rows.filter((row) => row.panel === panel);
    const lines = rows.filter((row) => row.ours.n > 0 && row.ours.mean !== null).map((row) => {
      const { mean, n } = row.ours;
      const cells = [row.series, row.place, number(mean), intervalOf(row)?.map(number).join(" to ") ?? "", n, row.paper === null ? "" : number(row.paper), row.bound === null ? "" : number(row.bound)];
      return `<tr>${cells.map((cell) => `<td>${escape(String(cell))}</td>`).join("")}</tr>`;
    });
    const heads = ["series", "place", rows[0]?.unit ?? "", "95 %", "n", "paper", "bound"];
    return `<section><h3>${escape(panel)}${rows[0]?.panel_title ? `: ${escape(rows[0].panel_title)}` : ""}, ${escape(rows[0]?.unit ?? "")}</h3><div class="keys">${key(rows)}</div>${figureSvg(rows)}
      <p><button type="button" data-save="${place}/${escape(panel)}/svg">SVG</button> <button type="button" data-save="${place}/${escape(panel)}/png">PNG</button> <button type="button" data-save="${place}/${escape(panel)}/csv">CSV</button></p>
      <details><summary>Values</summary><table><thead><tr>${heads.map((head) => `<th scope="col">${escape(head)}</th>`).join("")}</tr></thead><tbody>${lines.join("")}</tbody></table></details></section>`;
  });
  const claims = figure.claims.map(({ claim, why }) =>
    `<li class="${claim.holds ? "good" : "bad"}">${claim.holds ? "holds" : "does not hold"}: <span>${escape(claim.text)}${why ? ` (${escape(why)})` : ""}</span></li>`);
  return `<article><h2>${escape(figure.title)}</h2>${drawn.join("")}${claims.length > 0 ? `<h3>Claims</h3><ul class="claims">${claims.join("")}</ul>` : ""}${figure.notes.map((note) => `<p class="hint">${escape(note)}</p>`).join("")}</article>`;
}

export function figureCsv(rows: Point[]): string {
  const cell = (value: unknown) => (value === null ? "" : `"${String(value).replaceAll('"', '""')}"`);
  const lines = rows.map((row) =>
    [row.panel, row.series, row.place, row.unit, row.ours.mean, intervalOf(row)?.[0] ?? null, intervalOf(row)?.[1] ?? null, row.ours.n, row.paper, row.bound].map(cell).join(","));
  return ["panel,series,place,unit,ours,low,high,n,paper,bound", ...lines].join("\n") + "\n";
}

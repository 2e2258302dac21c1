// Figures of `chappe lab`: our values with their intervals, the paper's marks, the bound. Drawn as SVG, so that what is saved
// is what is seen.

import type { Figure, Point } from "./data";
import { escape } from "./detail";
import { colours } from "./theme";
import { niceStep } from "./timeline";
import { number } from "./words";

const [LEFT, TOP, WIDTH, HEIGHT] = [62, 14, 760, 240];

export function figureSvg(rows: Point[]): string {
  const palette = colours();
  const places = [...new Set(rows.map((row) => row.place))];
  const series = [...new Set(rows.map((row) => row.series))];
  const tops = rows.flatMap((row) => [row.ours.mean + (row.ours.ci95 ?? 0), row.paper ?? 0, row.bound ?? 0]);
  const high = Math.max(1e-9, ...tops.filter(Number.isFinite));
  const y = (value: number) => TOP + HEIGHT - (Math.max(0, Math.min(value, high)) / high) * HEIGHT;
  const slot = WIDTH / places.length;
  const bar = Math.min(46, (slot * 0.8) / series.length);
  const marks: string[] = [];
  const step = niceStep(high / 5);
  for (let value = 0; value <= high; value += step) {
    marks.push(`<line x1="${LEFT}" x2="${LEFT + WIDTH}" y1="${y(value)}" y2="${y(value)}" stroke="${palette.line}"/>`);
    marks.push(`<text x="${LEFT - 6}" y="${y(value) + 4}" text-anchor="end">${number(Number(value.toPrecision(6)))}</text>`);
  }
  // With many places only some of their names fit.
  const every = Math.max(1, Math.ceil((places.length * 46) / WIDTH));
  places.forEach((place, column) => {
    const middle = LEFT + (column + 0.5) * slot;
    if (column % every === 0) marks.push(`<text x="${middle}" y="${TOP + HEIGHT + 16}" text-anchor="middle">${escape(short(place, slot * every))}</text>`);
    series.forEach((name, order) => {
      const row = rows.find((row) => row.place === place && row.series === name);
      if (!row || row.ours.n === 0) return;
      const x = middle + (order - series.length / 2) * bar;
      const colour = palette.series[order % palette.series.length];
      const centre = x + bar / 2;
      marks.push(`<rect x="${x + 0.5}" y="${y(row.ours.mean)}" width="${Math.max(1, bar - 1)}" height="${TOP + HEIGHT - y(row.ours.mean)}" fill="${colour}"><title>${escape(tip(row))}</title></rect>`);
      if (row.ours.ci95 !== null) {
        const [low, up] = [y(row.ours.mean - row.ours.ci95), y(row.ours.mean + row.ours.ci95)];
        marks.push(`<path d="M${centre} ${low}V${up}M${centre - 3} ${up}h6M${centre - 3} ${low}h6" stroke="${palette.text}" fill="none"/>`);
      }
      if (row.paper !== null) {
        const at = y(row.paper);
        marks.push(`<path d="M${centre} ${at - 5}l5 5l-5 5l-5 -5z" fill="${palette.ground}" stroke="${palette.text}" stroke-width="1.5"><title>paper: ${number(row.paper)}</title></path>`);
      }
      if (row.bound !== null) {
        marks.push(`<path d="M${x} ${y(row.bound)}h${bar}" stroke="${palette.lost}" stroke-width="2" stroke-dasharray="4 2"><title>bound: ${number(row.bound)}</title></path>`);
      }
    });
  });
  const height = TOP + HEIGHT + 26;
  return `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${escape(series.join(", "))} by place" viewBox="0 0 ${LEFT + WIDTH + 10} ${height}" font-family="system-ui, sans-serif" font-size="11" fill="${palette.text}"><rect width="100%" height="100%" fill="${palette.ground}"/>${marks.join("")}</svg>`;
}

function short(text: string, room: number): string {
  const letters = Math.max(3, Math.floor(room / 6.5));
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
}

function tip(row: Point): string {
  const { mean, ci95, n } = row.ours;
  return `${row.series}, ${row.place}: ${number(mean)}${ci95 === null ? "" : ` ± ${number(ci95)}`} ${row.unit} (n=${n})`;
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
    const lines = rows.filter((row) => row.ours.n > 0).map((row) => {
      const { mean, ci95, n } = row.ours;
      const cells = [row.series, row.place, number(mean), ci95 === null ? "" : number(ci95), n, row.paper === null ? "" : number(row.paper), row.bound === null ? "" : number(row.bound)];
      return `<tr>${cells.map((cell) => `<td>${escape(String(cell))}</td>`).join("")}</tr>`;
    });
    const heads = ["series", "place", rows[0]?.unit ?? "", "± 95 %", "n", "paper", "bound"];
    return `<section><h3>${escape(panel)}, ${escape(rows[0]?.unit ?? "")}</h3><div class="keys">${key(rows)}</div>${figureSvg(rows)}
      <p><button type="button" data-save="${place}/${escape(panel)}/svg">SVG</button> <button type="button" data-save="${place}/${escape(panel)}/png">PNG</button> <button type="button" data-save="${place}/${escape(panel)}/csv">CSV</button></p>
      <details><summary>Values</summary><table><thead><tr>${heads.map((head) => `<th scope="col">${escape(head)}</th>`).join("")}</tr></thead><tbody>${lines.join("")}</tbody></table></details></section>`;
  });
  const claims = figure.claims.map(({ claim, why }) =>
    `<li class="${claim.holds ? "good" : "bad"}">${claim.holds ? "holds" : "does not hold"}: <span>${escape(claim.text)}${why ? ` (${escape(why)})` : ""}</span></li>`);
  return `<article><h2>${escape(figure.title)}</h2>${drawn.join("")}${claims.length > 0 ? `<h3>Claims</h3><ul class="claims">${claims.join("")}</ul>` : ""}</article>`;
}

export function figureCsv(rows: Point[]): string {
  const cell = (value: unknown) => (value === null ? "" : `"${String(value).replaceAll('"', '""')}"`);
  const lines = rows.map((row) =>
    [row.panel, row.series, row.place, row.unit, row.ours.mean, row.ours.ci95, row.ours.n, row.paper, row.bound].map(cell).join(","));
  return ["panel,series,place,unit,ours,ci95,n,paper,bound", ...lines].join("\n") + "\n";
}

// What is known of one frame, in words: what it was, what became of it at each receiver, and who destroyed it.

import type { Model } from "./model";
import type { Pick } from "./timeline";
import { cause, decibel, number, plain, span, time } from "./words";

/** Text becomes markup in one place only: names in a trace may hold anything. */
export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

function frameTitle(model: Model, row: number): string {
  const { frames } = model.run;
  const kind = plain(frames.column("kind").word(row));
  const packet = frames.column("packet").at(row);
  const part = frames.column("part").at(row);
  const numbers = [packet >= 0 ? `packet ${packet}` : "", part >= 0 ? `part ${part}` : ""].filter(Boolean);
  const node = frames.column("node").at(row);
  const what = frames.column("octets").at(row) === 0 ? `burst ${frames.column("number").at(row)} of ${kind}` : `${kind} frame ${frames.column("number").at(row)}`;
  return `${what} of ${model.name(node)}${
    numbers.length > 0 ? ` (${numbers.join(", ")})` : ""
  }`;
}

function rows(pairs: [string, string][]): string {
  return `<dl>${pairs.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${value}</dd>`).join("")}</dl>`;
}

/** Whom to blame, in a sentence. */
export function blame(model: Model, row: number): string {
  const { receptions, frames } = model.run;
  const outcome = receptions.column("outcome").word(row);
  const culprit = receptions.column("culprit").at(row);
  if (culprit >= 0) {
    const from = frames.column("node").at(culprit);
    const own = from === receptions.column("node").at(row);
    const name = frameTitle(model, culprit);
    if (own) return `the receiver's own ${name}`;
    if (outcome === "preamble_missed") return `the receiver was with the ${name}`;
    return `the ${name}`;
  }
  if (outcome === "collision" || outcome === "captured" || outcome === "preamble_missed") {
    return "a frame that is no longer in the recording";
  }
  return "no frame";
}

export function detail(model: Model, pick: Pick | null): string {
  if (!pick) {
    return `<p class="hint">Click a frame, or press <kbd>n</kbd> for the next lost one. <kbd>?</kbd> lists all keys.</p>`;
  }
  return pick.kind === "frame" ? frame(model, pick.row) : reception(model, pick.row);
}

function reception(model: Model, row: number): string {
  const { receptions } = model.run;
  const of = (name: string) => receptions.column(name).at(row);
  const outcome = receptions.column("outcome").word(row);
  const received = outcome === "received";
  const sent = of("frame");
  const title = sent >= 0 ? frameTitle(model, sent) : `a frame of ${model.name(of("from"))}`;
  const pairs: [string, string][] = [
    ["at", escape(model.name(of("node")))],
    ["outcome", `<strong class="${received ? "good" : "bad"}">${escape(cause(outcome))}</strong>`],
  ];
  if (!received) pairs.push(["by", escape(blame(model, row))]);
  pairs.push(
    ["SINR", decibel(of("sinr_db"), "dB")],
    ["power", decibel(of("power_dbm"), "dBm")],
    ["began", time(of("start_ns"), 1000)],
    ["known after", span(Math.max(0, of("known_ns") - of("start_ns")))],
  );
  const noise = model.run.about.noise_dbm;
  if (noise !== null) pairs.push(["noise", decibel(noise, "dBm")]);
  const jumps = [sent >= 0 ? link("frame", sent, "the frame everywhere") : ""];
  const culprit = of("culprit");
  if (culprit >= 0) jumps.push(link("frame", culprit, "the frame to blame"));
  return `<h2>${received ? "" : "Lost: "}${escape(title)}</h2>${rows(pairs)}<p>${jumps.filter(Boolean).join(" ")}</p>`;
}

function link(kind: string, row: number, text: string): string {
  return `<button type="button" data-${kind}="${row}">${escape(text)}</button>`;
}

function frame(model: Model, row: number): string {
  const { frames, receptions } = model.run;
  const of = (name: string) => frames.column(name).at(row);
  const to = of("to");
  const pairs: [string, string][] = [
    ["to", to < 0 ? "all" : escape(model.name(to))],
    ["began", time(of("start_ns"), 1000)],
    ["on the air", span(of("airtime_ns"))],
    ["octets", String(of("octets"))],
    ["channel", of("channel") === 255 ? "all" : String(of("channel"))],
  ];
  const all = [...model.receptionsOf(row)];
  all.sort((a, b) => receptions.column("node").at(a) - receptions.column("node").at(b));
  const lines = all.map((reception) => {
    const outcome = receptions.column("outcome").word(reception);
    return `<tr><td>${receptions.column("node").at(reception)}</td><td class="${outcome === "received" ? "good" : "bad"}">${link(
      "reception",
      reception,
      plain(outcome),
    )}</td><td>${decibel(receptions.column("sinr_db").at(reception), "dB")}</td></tr>`;
  });
  const table = `<table><thead><tr><th scope="col">node</th><th scope="col">outcome</th><th scope="col">SINR</th></tr></thead><tbody>${lines.join("")}</tbody></table>`;
  return `<h2>${escape(frameTitle(model, row))}</h2>${rows(pairs)}${lines.length > 0 ? table : `<p>${model.isInterferer(of("node")) || of("octets") === 0 ? "Nobody can receive this; it disturbs those in reach." : "No one was in reach."}</p>`}`;
}

/** What a node of a running daemon holds at a moment, and its links. */
export function held(model: Model, node: number, at: number): string {
  const { readings, links } = model.run;
  const [values, words] = [readings.column("value"), readings.column("word")];
  const own = model.readings.names.flatMap((name) => model.readings.of(name, node));
  const lines = own.map((series) => {
    const row = model.readings.rowAt(series, at);
    const value = row < 0 ? "" : Number.isNaN(values.at(row)) ? plain(words.word(row)) : number(values.at(row));
    const several = own.some((other) => other.name === series.name && other.part !== series.part);
    return `<tr><td>${escape(plain(series.name))}${several ? ` (${series.part})` : ""}</td><td>${escape(value)}</td></tr>`;
  });
  const near: string[] = [];
  for (let row = 0; row < links.rows; row++) {
    const [from, to] = [links.column("from").at(row), links.column("to").at(row)];
    if (from !== node && to !== node) continue;
    const [arrow, other] = from === node ? ["to", to] : ["from", from];
    near.push(`<tr><td>${arrow} ${escape(model.name(other))}</td><td>${(100 * links.column("delivery").at(row)).toFixed(0)} %</td></tr>`);
  }
  const table = (heads: string[], rows: string[]) =>
    rows.length === 0 ? "" : `<table><thead><tr>${heads.map((head) => `<th scope="col">${head}</th>`).join("")}</tr></thead><tbody>${rows.slice(0, 300).join("")}</tbody></table>`;
  return `<h2>${escape(model.name(node))}</h2>${table(["link", "frames that arrive"], near)}${table(["value", "now"], lines)}`;
}

// What things are called on the page.

/** Why a frame was lost, as a sentence; the words of `chappe_sim::Loss`. */
const CAUSES: Record<string, string> = {
  received: "received",
  too_weak: "too weak to be heard",
  noise: "destroyed by noise",
  collision: "collided with another transmission",
  preamble_missed: "missed: the receiver was busy with another frame",
  captured: "left by the receiver for a stronger frame",
  transmitting: "missed: the receiver was transmitting",
  asleep: "missed: the receiver was asleep",
  down: "missed: the receiver had crashed",
  link_cut: "stopped by a cut link",
  corrupted: "corrupted by a fault",
  other_channel: "missed: the receiver was on another channel",
  truncated: "cut short: the transmitter crashed",
  aborted: "given up by the receiver while it arrived",
  link: "lost by the link's own loss process",
};

export function cause(outcome: string): string {
  return CAUSES[outcome] ?? outcome;
}

/** A time in ns with as many digits as `step` ns need. */
export function time(ns: number, step = 1e3): string {
  const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(Math.max(step, 1)))));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

/** A duration in its own unit. */
export function span(ns: number): string {
  if (ns >= 1e9) return `${(ns / 1e9).toPrecision(4)} s`;
  if (ns >= 1e6) return `${(ns / 1e6).toPrecision(4)} ms`;
  return `${(ns / 1e3).toPrecision(4)} µs`;
}

export function decibel(value: number, unit: string): string {
  return Number.isFinite(value) ? `${value.toFixed(1)} ${unit}` : "none";
}

export function plain(name: string): string {
  return name.replaceAll("_", " ");
}

export function number(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(4);
}

// A grid of values with more cells than room for rectangles: each pixel shows the largest value that falls into it. Moving the cursor paints
// only the pixels whose values have changed.

import type { Moment } from "./readings";
import { colours, pixel } from "./theme";

/** Which pixels each row or column of the grid takes, and which of them each pixel shows: from the first to the last, both included. */
interface Axis {
  begin: Uint32Array;
  end: Uint32Array;
  first: Uint32Array;
  last: Uint32Array;
}

function axis(count: number, pixels: number): Axis {
  const edge = (place: number) => Math.min(pixels - 1, Math.floor((place * pixels) / Math.max(1, count)));
  const begin = Uint32Array.from({ length: count }, (_, place) => edge(place));
  const end = Uint32Array.from({ length: count }, (_, place) => (place + 1 === count ? pixels : Math.max(begin[place] + 1, edge(place + 1))));
  const [first, last] = [new Uint32Array(pixels).fill(count), new Uint32Array(pixels)];
  for (let place = 0; place < count; place++) {
    for (let at = begin[place]; at < end[place]; at++) {
      first[at] = Math.min(first[at], place);
      last[at] = place;
    }
  }
  return { begin, end, first, last };
}

export class Cells {
  private readonly image: ImageData;
  private readonly pixels: Uint32Array;
  private readonly down: Axis;
  private readonly across: Axis;
  private readonly shades: Uint32Array;
  private readonly ground: number;
  /** How many readings the image shows; -1 before the first. */
  private applied = -1;

  constructor(private readonly grid: Moment, private readonly width: number, height: number) {
    const palette = colours();
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.down = axis(grid.nodes.length, height);
    this.across = axis(grid.parts.length, width);
    this.shades = ramp(palette.ground, palette.quiet, palette.accent);
    this.ground = pixel(palette.ground);
  }

  /** The image of the grid as it is now. */
  paint(): ImageData {
    const { grid, down, across } = this;
    const changed = this.applied < 0 ? null : grid.changedSince(this.applied);
    // A pixel takes longer alone than among all.
    if (changed && changed.length < this.pixels.length / 4) {
      for (const cell of changed) {
        const [row, column] = [Math.floor(cell / grid.parts.length), cell % grid.parts.length];
        for (let y = down.begin[row]; y < down.end[row]; y++) {
          for (let x = across.begin[column]; x < across.end[column]; x++) this.pixels[y * this.width + x] = this.shade(x, y);
        }
      }
    } else {
      for (let place = 0; place < this.pixels.length; place++) {
        this.pixels[place] = this.shade(place % this.width, Math.floor(place / this.width));
      }
    }
    this.applied = grid.applied;
    return this.image;
  }

  /** The colour of a pixel: by the largest value in it, and that of the ground where there never is one. */
  private shade(x: number, y: number): number {
    const { down, across, grid } = this;
    const { values, known, high } = grid;
    let most = -1;
    for (let row = down.first[y]; row <= down.last[y]; row++) {
      const line = row * grid.parts.length;
      for (let cell = line + across.first[x]; cell <= line + across.last[x]; cell++) {
        if (known[cell] === 0) continue;
        // NaN is no value yet.
        const value = values[cell] > 0 ? values[cell] : 0;
        if (value > most) most = value;
      }
    }
    if (most < 0) return this.ground;
    return this.shades[most === 0 ? 0 : 1 + Math.min(254, Math.floor((most * 254) / Math.max(high, 1e-9)))];
  }
}

/** 256 shades: first that of no value, then from little to the most. */
function ramp(ground: string, quiet: string, accent: string): Uint32Array {
  const parts = (colour: string) => [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
  const mix = (below: number[], above: number[], share: number) => below.map((value, place) => value + (above[place] - value) * share);
  const none = mix(parts(ground), parts(quiet), 0.12);
  return Uint32Array.from({ length: 256 }, (_, place) => {
    const [red, green, blue] = place === 0 ? none : mix(none, parts(accent), 0.15 + (0.85 * (place - 1)) / 254);
    return (0xff000000 | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red)) >>> 0;
  });
}

// Colours: those of the page's style sheet, read where a canvas needs them.

export interface Colours {
  ground: string;
  raised: string;
  text: string;
  quiet: string;
  line: string;
  sends: string;
  receives: string;
  overhears: string;
  asleep: string;
  down: string;
  lost: string;
  accent: string;
  series: string[];
}

let known: Colours | null = null;

export function colours(): Colours {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  known = {
    ground: of("ground"),
    raised: of("raised"),
    text: of("text"),
    quiet: of("quiet"),
    line: of("line"),
    sends: of("sends"),
    receives: of("receives"),
    overhears: of("overhears"),
    asleep: of("asleep"),
    down: of("down"),
    lost: of("lost"),
    accent: of("accent"),
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((place) => of(`series-${place}`)),
  };
  return known;
}

export function setTheme(dark: boolean): void {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  known = null;
}

export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}

/** A `#rrggbb` colour as a pixel of a canvas: ABGR in one little-endian word. */
export function pixel(colour: string): number {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

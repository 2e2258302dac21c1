// Measures the page: `node frames.mjs PAGE.html`. Pans, zooms and plays, and prints what drawing a frame took: by the clock, and by the
// processor's time of the page's thread, in which other programs' turns do not count.

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const browser = await chromium.launch({ executablePath: process.env.CHAPPE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
const begun = Date.now();
await page.goto(pathToFileURL(resolve(process.argv[2])).href);
await page.waitForSelector("body[data-ready=true]", { timeout: 120_000 });
console.log(`${await page.locator("#message").innerText()}\nloaded in ${Date.now() - begun} ms`);

// Work of the page's own thread that a frame waits for, by names of Chromium's trace: what our code does, and what the browser does after it.
const SCRIPTING = ["FireAnimationFrame", "RunMicrotasks", "TimerFire", "EventDispatch"];
const BROWSER = ["UpdateLayoutTree", "Layout", "PrePaint", "Paint", "Layerize", "Commit"];

// Milliseconds of processor for each frame of a trace: ours, and the browser's.
function costs(trace) {
  const events = JSON.parse(trace).traceEvents.filter((event) => event.ts);
  const count = new Map();
  for (const event of events) if (event.name === "FireAnimationFrame") count.set(event.tid, (count.get(event.tid) ?? 0) + 1);
  const [thread] = [...count].sort((a, b) => b[1] - a[1])[0];
  const own = events.filter((event) => event.tid === thread).sort((a, b) => a.ts - b.ts);
  const frames = [];
  let frame = { ours: 0, browser: 0 };
  // What lies within an event that counts is counted with it.
  let until = 0;
  for (const event of own) {
    if (event.ph !== "X" || event.tdur === undefined || event.ts < until) continue;
    const kind = SCRIPTING.includes(event.name) ? "ours" : BROWSER.includes(event.name) ? "browser" : undefined;
    if (!kind) continue;
    frame[kind] += event.tdur / 1000;
    until = event.ts + event.dur;
    // The last work of a frame on this thread.
    if (event.name !== "Commit") continue;
    frames.push(frame);
    frame = { ours: 0, browser: 0 };
  }
  return frames.slice(2);
}

const ranks = (list) => {
  const sorted = [...list].sort((a, b) => a - b);
  const [median, most, worst] = [0.5, 0.95, 1].map((share) => (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN).toFixed(1));
  return `${median} ms median, ${most} at 95 %, ${worst} worst`;
};

async function measure(name, steps, act) {
  await browser.startTracing(page, { categories: ["devtools.timeline", "devtools.timeline.frame", "disabled-by-default-devtools.timeline"] });
  const times = await page.evaluate(async ([steps, act]) => {
    const view = window.chappe;
    const run = new Function("view", "step", act);
    view.drawn.length = 0;
    const between = [];
    let last = performance.now();
    for (let step = 0; step < steps; step++) {
      run(view, step);
      view.dirty = true;
      await new Promise((next) => requestAnimationFrame(next));
      between.push(performance.now() - last);
      last = performance.now();
    }
    return { drawn: view.drawn.slice(), between: between.slice(2) };
  }, [steps, act]);
  const spent = costs((await browser.stopTracing()).toString());
  console.log(`${name} (n=${times.drawn.length})
  together, of processor        ${ranks(spent.map((frame) => frame.ours + frame.browser))}
  scripting, of processor       ${ranks(spent.map((frame) => frame.ours))}
  the browser, of processor     ${ranks(spent.map((frame) => frame.browser))}
  drawing, by the clock         ${ranks(times.drawn)}
  between frames, by the clock  ${ranks(times.between)}`);
}

await measure("whole run", 120, "view.timeline.scroll(1); view.move(view.model.end * step / 120)");
await measure("zooming in", 120, "view.timeline.zoom(0.93, view.model.end / 2)");
await measure("panning close up", 120, "view.timeline.pan(0.02)");
await measure("zooming out", 120, "view.timeline.zoom(1.07)");
await page.keyboard.press(" ");
await measure("playing", 180, "");
await page.keyboard.press(" ");
await page.selectOption("#mode", "moment");
await measure("all nodes at a moment", 120, "view.move(view.model.end * step / 120)");
await browser.close();

// Measures the page: `node frames.mjs PAGE.html`. Pans, zooms and plays, and prints what drawing a frame took.

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const browser = await chromium.launch({ executablePath: process.env.CHAPPE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
const begun = Date.now();
await page.goto(pathToFileURL(resolve(process.argv[2])).href);
await page.waitForSelector("body[data-ready=true]", { timeout: 120_000 });
console.log(`${await page.locator("#message").innerText()}\nloaded in ${Date.now() - begun} ms`);

async function measure(name, steps, act) {
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
  const at = (list, share) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(share * list.length))].toFixed(1);
  console.log(`${name}: drawing ${at(times.drawn, 0.5)} ms median, ${at(times.drawn, 0.95)} at 95 %, ${at(times.drawn, 1)} worst; between frames ${at(times.between, 0.5)} median, ${at(times.between, 0.95)} at 95 % (n=${times.drawn.length})`);
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

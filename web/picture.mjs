// Draws the README's picture: `node picture.mjs PAGE.html OUT.png`. `cargo xtask picture` calls it.

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [from, to] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHAPPE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 760 } });
await page.goto(pathToFileURL(resolve(from)).href);
await page.waitForSelector("body[data-ready=true]");
// The third collision, with a stretch of time around it; the panel of all receivers.
await page.fill("#query", "collision");
for (let step = 0; step < 3; step++) await page.press("#query", "Enter");
await page.evaluate(() => {
  const { timeline, model, selected } = window.chappe;
  const at = model.startOf(selected.row);
  timeline.show(at - 2e7, 8e7);
  window.chappe.move(at + 1e6);
  document.activeElement.blur();
});
await page.selectOption("#mode", "moment");
await page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))));
await page.screenshot({ path: to });
await browser.close();

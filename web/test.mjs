// Drives the page in Chromium: `node test.mjs PAGE.html [SCREENSHOTS]`. PAGE.html comes from `chappe view --out`, with two
// runs and figures. Exits with 1 at the first thing that fails.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [page_path, shots] = process.argv.slice(2);
const executablePath = process.env.CHAPPE_CHROMIUM ?? "/usr/bin/chromium";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const url = page_path.startsWith("http") ? page_path : pathToFileURL(resolve(page_path)).href;

// The sandbox needs privileges that a container does not have; the page is our own.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, bypassCSP: true });
const page = await context.newPage();
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
const requests = [];
page.on("request", (request) => requests.push(request.url()));

const text = (id) => page.locator(`#${id}`).innerText();
const message = () => text("message");
const cursor = () => page.evaluate(() => window.chappe.cursor);
const windowLength = () => page.evaluate(() => window.chappe.timeline.window.end - window.chappe.timeline.window.begin);
const frame = () => page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(() => next()))));

async function shot(name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await frame();
  await page.screenshot({ path: `${shots}/${name}.png` });
}

async function clean(what) {
  if (!(await page.evaluate("typeof axe !== 'undefined'"))) await page.evaluate(axe);
  const result = await page.evaluate("axe.run()");
  const found = result.violations.map((rule) => `${rule.id}: ${rule.help} (${rule.nodes.map((node) => node.target).join("; ")})`);
  assert.deepEqual(found, [], `axe-core on ${what}`);
  console.log(`axe-core: ${what} is clean (${result.passes.length} rules)`);
}

async function download(choice) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.selectOption("#save", choice)]);
  return readFileSync(await file.path());
}

const begun = Date.now();
await page.goto(url);
await page.waitForSelector("body[data-ready]", { timeout: 60_000 });
assert.equal(await page.getAttribute("body", "data-ready"), "true", await message());
console.log(`loaded in ${Date.now() - begun} ms`);
assert.match(await message(), /nodes, [\d,]+ frames, [\d,]+ receptions and losses/);
await shot("run-light");
await clean("the run in light colours");

// Find: a node, a cause, a kind, nonsense.
await page.keyboard.press("/");
await page.keyboard.type("node 2");
await page.keyboard.press("Enter");
assert.equal(await page.evaluate(() => window.chappe.node), 2);
await page.fill("#query", "collision");
await page.keyboard.press("Enter");
assert.match(await text("detail"), /Lost: /);
assert.match(await text("detail"), /collided with another transmission/);
assert.match(await text("detail"), /SINR\s+-?\d+\.\d dB/);
assert.match(await message(), /by the .* frame \d+ of node \d+/);
await page.fill("#query", "gibberish");
await page.keyboard.press("Enter");
assert.match(await message(), /Nothing is called/);
await page.keyboard.press("Escape");
await page.evaluate(() => document.activeElement.blur());

// The map names each node once: chosen, under the pointer, and while it sends.
const twice = await page.evaluate(() => {
  const { map, model } = window.chappe;
  const { node, hovered, at } = map;
  const own = Object.getOwnPropertyDescriptor(CanvasRenderingContext2D.prototype, "fillText");
  let written = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    written.push([text, `${x} ${y}`]);
    return own.value.call(this, text, x, y);
  };
  const found = [];
  for (let place = 0; place < Math.min(model.nodes, 60); place++) {
    // The picture behind is drawn anew. Every third one is chosen, every third under the pointer, all while they send.
    [map.node, map.hovered] = [place % 3 ? 0 : place, place % 3 === 1 ? place : null];
    const sent = model.lanes[place].sent[0];
    map.at = sent === undefined ? at : model.run.frames.column("start_ns").at(sent) + 1;
    map.network = null;
    written = [];
    map.draw();
    const spots = new Map();
    for (const [text, spot] of written) spots.set(text, (spots.get(text) ?? new Set()).add(spot));
    for (const [text, all] of spots) if (text !== "✕" && all.size > 1) found.push(`${text} with ${place}`);
  }
  Object.defineProperty(CanvasRenderingContext2D.prototype, "fillText", own);
  [map.node, map.hovered, map.at, map.network] = [node, hovered, at, null];
  return found;
});
assert.deepEqual(twice, [], "names that stand twice on the map");

// Lost frames by key; the cursor moves forward, then back.
const before = await cursor();
await page.keyboard.press("n");
const after = await cursor();
assert.ok(after >= before, `${after} < ${before}`);
await page.keyboard.press("n");
await page.keyboard.press("p");
assert.equal(await cursor(), after);

// Zoom by key, button and wheel; the whole run again.
const length = await windowLength();
await page.keyboard.press("+");
assert.ok((await windowLength()) < length);
await page.click("#out");
const box = await page.locator("#timeline").boundingBox();
await page.mouse.move(box.x + 400, box.y + 60);
await page.mouse.wheel(0, -300);
await frame();
assert.ok((await windowLength()) < length);
await shot("zoomed-light");

// Click the lost frame that is shown: the same one as was found, with its cause.
const spot = await page.evaluate(() => {
  const { timeline, model, selected } = window.chappe;
  const row = selected.row;
  const middle = (model.startOf(row) + model.endOf(row)) / 2;
  timeline.show(middle - 1e6, 2e6);
  window.chappe.dirty = true;
  const node = model.run.receptions.column("node").at(row);
  timeline.scrollTo(node);
  return { y: 22 + (node - timeline.top + 0.85) * timeline.laneHeight, row };
});
await frame();
await page.keyboard.press("Escape");
await page.mouse.click(box.x + 64 + (box.width - 64) / 2, box.y + spot.y);
const picked = await page.evaluate(() => window.chappe.selected);
assert.ok(picked, "a click on a lost frame finds it");
assert.match(await text("detail"), /outcome/);
await shot("lost-light");
// The frame to blame, by a button.
const blamed = page.locator("#detail button", { hasText: "the frame to blame" });
if (await blamed.count()) {
  await blamed.click();
  assert.equal((await page.evaluate(() => window.chappe.selected)).kind, "frame");
}

// Play moves the cursor; stop holds it.
await page.evaluate(() => document.activeElement.blur());
const still = await cursor();
await page.keyboard.press(" ");
await page.waitForTimeout(400);
await page.keyboard.press(" ");
const moved = await cursor();
assert.ok(moved > still, "playing moves the cursor");
await page.waitForTimeout(100);
assert.equal(await cursor(), moved, "and stopping holds it");

// Panels: every reading draws as lines and as a moment.
for (const value of await page.locator("#reading option").evaluateAll((all) => all.map((one) => one.value))) {
  await page.selectOption("#reading", value);
  await frame();
}
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("0");
await page.evaluate(() => window.chappe.move(window.chappe.model.end * 0.4));
await page.keyboard.press("m");
await shot("moment-light");
await page.keyboard.press("m");

// A picture of all nodes that is patched as the cursor moves is the one that is painted anew: forwards, back and by leaps, with
// more pixels than cells and with fewer.
const pictures = await page.evaluate(() => {
  const { panels, model } = window.chappe;
  const context = document.createElement("canvas").getContext("2d");
  const grid = model.readings.moment(model.readings.names.find((name) => name === "rank") ?? model.readings.names[0]);
  const moments = Array.from({ length: 60 }, (_, step) => step / 60);
  const wrong = [];
  const seen = new Set();
  let patched = 0;
  for (const [width, height] of [[400, 90], [90, 400], [grid.parts.length - 1, grid.nodes.length], [4, 3]]) {
    const show = () => {
      panels.showCells(context, grid, { left: 0, top: 0, width, height });
      return new Uint32Array(panels.painted.cells.paint().data.slice().buffer);
    };
    panels.painted = null;
    for (const share of [...moments, ...moments.toReversed(), 0.5, 0.501, 0.499, 0, 1]) {
      const before = grid.applied;
      grid.seek(share * model.end);
      if (4 * grid.changedSince(before).length < width * height && grid.applied !== before) patched++;
      const after = show();
      const kept = panels.painted;
      panels.painted = null;
      const anew = show();
      panels.painted = kept;
      if (after.some((colour, place) => colour !== anew[place])) wrong.push(`${width} x ${height} at ${share}`);
      seen.add(anew.join());
    }
  }
  panels.painted = null;
  return { wrong, seen: seen.size, patched };
});
assert.deepEqual(pictures.wrong, []);
assert.ok(pictures.seen > 50 && pictures.patched > 50, `${pictures.seen} pictures, ${pictures.patched} of them patched`);
console.log(`all nodes: ${pictures.patched} patched pictures are as painted anew, ${pictures.seen} differ`);

// Dark colours.
await page.keyboard.press("d");
await shot("run-dark");
await clean("the run in dark colours");

// Keys.
await page.keyboard.press("?");
assert.ok(await page.locator("#keys").isVisible());
await shot("keys-dark");
await clean("the keys");
await page.keyboard.press("Escape");

// Compare.
if (await page.locator("#tab-compare").isEnabled()) {
  await page.keyboard.press("2");
  assert.match(await message(), /First difference at|the same frames/);
  await shot("compare-dark");
  await clean("the comparison");
  await page.keyboard.press("d");
  await shot("compare-light");
  await page.keyboard.press("1");
  await page.keyboard.press("d");
}

// Save.
const rows = (await download("csv")).toString().trim().split("\n");
assert.match(rows[0], /^node,from,start_ns/);
assert.ok(rows.length > 1);
await page.evaluate(() => { window.chappe.timeline.show(0, 2e7); window.chappe.dirty = true; });
const drawing = await download("svg");
assert.match(drawing.toString(), /^<svg xmlns/);
assert.equal(await page.evaluate((svg) => new DOMParser().parseFromString(svg, "image/svg+xml").querySelectorAll("parsererror").length, drawing.toString()), 0);
for (const choice of ["png", "map", "panel"]) assert.equal((await download(choice)).subarray(1, 4).toString(), "PNG");

// Figures.
if (await page.locator("#tab-figures").isEnabled()) {
  await page.keyboard.press("3");
  // What was said of the runs does not stand over the figures.
  assert.doesNotMatch(await message(), /First difference|Lost at/);
  await shot("figures-dark");
  await clean("the figures in dark colours");
  await page.keyboard.press("d");
  await shot("figures-light");
  await clean("the figures in light colours");
  assert.ok((await page.locator("#view-figures svg").count()) > 0);
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator("#view-figures button", { hasText: "CSV" }).first().click()]);
  assert.match(readFileSync(await file.path()).toString(), /^panel,series/);
  const [picture] = await Promise.all([page.waitForEvent("download"), page.locator("#view-figures button", { hasText: "PNG" }).first().click()]);
  const octets = readFileSync(await picture.path());
  assert.equal(octets.subarray(1, 4).toString(), "PNG");
  // A picture of one colour would be compressed to less.
  assert.ok(octets.length > 8_000, `${octets.length} octets`);
  await page.keyboard.press("1");
}

// A narrow window.
await page.setViewportSize({ width: 420, height: 800 });
await frame();
await shot("narrow");

// Nothing from elsewhere, no errors.
const foreign = requests.filter((one) => !one.startsWith(url.split("?")[0]) && !one.startsWith("blob:") && !one.startsWith("data:"));
assert.deepEqual(foreign.filter((one) => !one.includes("/data")), []);
assert.deepEqual(errors, []);
await browser.close();
console.log("the page works");

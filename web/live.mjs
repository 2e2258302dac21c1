// Drives the page of running daemons in Chromium: `node live.mjs CHAPPE SCENARIO [SCREENSHOTS]`. It starts a border router with traffic
// and `chappe view --live`, and ends both. Exits with 1 at the first thing that fails, with 77 if a border router cannot run here.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [chappe, scenario, shots] = process.argv.slice(2);
const executablePath = process.env.CHAPPE_CHROMIUM ?? "/usr/bin/chromium";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// Waits end with an event; a limit only ends a test that hangs.
const LIMIT = 300_000;

const viewer = spawn(chappe, ["view", "--live", "--quiet"], { stdio: ["ignore", "pipe", "inherit"] });
const [url] = await once(createInterface(viewer.stdout), "line");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
let border = null;
try {
  await test();
} finally {
  await browser.close();
  border?.kill("SIGKILL");
  viewer.kill("SIGKILL");
}

async function test() {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, bypassCSP: true });
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(url);
  await page.waitForSelector("body[data-ready=true]", { timeout: LIMIT });
  const until = (what, argument) => page.waitForFunction(what, argument, { timeout: LIMIT, polling: 200 });
  const shot = async (name) => {
    if (!shots) return;
    mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: `${shots}/${name}.png` });
  };
  const clean = async (what) => {
    if (!(await page.evaluate("typeof axe !== 'undefined'"))) await page.evaluate(axe);
    const { violations } = await page.evaluate("axe.run()");
    assert.deepEqual(violations.map((rule) => `${rule.id}: ${rule.nodes.map((node) => node.target).join("; ")}`), [], `axe-core on ${what}`);
  };

  // A daemon that starts later appears. Its program's pings are its traffic.
  border = spawn(chappe, ["border", scenario, "--quiet", "--late-ok", "--", "sh", "-c", "echo up; ping -i 0.5 $LLN_3"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(border, "exit");
  const started = await Promise.race([once(createInterface(border.stdout), "line"), ended]);
  if (started[0] !== "up") {
    console.log("a border router cannot run here");
    process.exitCode = 77;
    return;
  }
  const name = `border-${border.pid}.sock`;
  await until((name) => window.chappe.contents.runs.some((run) => run.name.includes(name)), name);
  await page.evaluate((name) => {
    const place = window.chappe.contents.runs.findIndex((run) => run.name.includes(name));
    document.getElementById("run").value = String(place);
    document.getElementById("run").dispatchEvent(new Event("change"));
  }, name);
  assert.match(await page.locator("#message").innerText(), /4 of 4 nodes/);
  assert.ok(await page.evaluate(() => window.chappe.model.run.links.rows >= 6), "links between the motes");

  // Values go on by themselves, and the cursor with them.
  await page.selectOption("#reading", "data_frames_per_s");
  const points = () => page.evaluate(() => window.chappe.model.run.readings.rows);
  const [rows, at] = [await points(), await page.evaluate(() => window.chappe.cursor)];
  await until((rows) => window.chappe.model.run.readings.rows > rows + 8, rows);
  assert.ok((await page.evaluate(() => window.chappe.cursor)) > at, "the cursor follows");
  assert.equal(await page.inputValue("#reading"), "data_frames_per_s", "the choice stays");
  // By keys: another node, whose values stand beside the map.
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await until(() => document.querySelector("#detail h2")?.textContent === "node 2");
  assert.match(await page.locator("#detail").innerText(), /hops\s+2[\s\S]*radio duty/);
  await shot("live-light");
  await clean("running daemons in light colours");
  await page.keyboard.press("d");
  await page.keyboard.press("m");
  await shot("live-dark");
  await clean("running daemons in dark colours");
  // Its frames come as well. One that is chosen says what became of it, and stays chosen while others come.
  await until(() => window.chappe.model.run.receptions.rows > 20);
  await page.evaluate(() => window.chappe.move(0));
  await page.fill("#query", "ack");
  await page.keyboard.press("Enter");
  const chosen = () => page.evaluate(() => {
    const { selected, model } = window.chappe;
    return selected && ["node", "number", "start_ns"].map((name) => model.run.frames.column(name).at(selected.row)).join(" ");
  });
  const [ack, frames] = [await chosen(), await page.evaluate(() => window.chappe.model.run.frames.rows)];
  assert.ok(ack, "a frame of a running network is found");
  assert.match(await page.locator("#detail").innerText(), /ack/);
  await until((rows) => window.chappe.model.run.frames.rows > rows, frames);
  assert.equal(await chosen(), ack);
  await shot("live-frame-dark");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("Escape");
  // A window that the user has moved stays where it is.
  await page.keyboard.press("ArrowLeft");
  const still = await page.evaluate(() => window.chappe.cursor);
  const more = await points();
  await until((rows) => window.chappe.model.run.readings.rows > rows, more);
  assert.equal(await page.evaluate(() => window.chappe.cursor), still);

  // Its end is seen, and its past stays.
  border.kill("SIGINT");
  await ended;
  await until(() => /does not answer any more/.test(document.getElementById("message").textContent));
  assert.ok((await points()) > 0);
  await shot("live-ended-dark");
  assert.deepEqual(errors, []);
  console.log("running daemons are shown");
}

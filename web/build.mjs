// Builds the page into one file: `node build.mjs OUT`. `cargo xtask page` calls it.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const common = { bundle: true, minify: true, write: false, legalComments: "none", logLevel: "warning" };
const script = await build({ ...common, entryPoints: ["src/main.ts"], format: "iife", target: "es2022" });
const style = await build({ ...common, entryPoints: ["src/style.css"], loader: { ".css": "css" } });
const page = readFileSync("src/view.html", "utf8")
  .replace("/*STYLE*/", () => style.outputFiles[0].text.trim())
  // A script must not end early at a closing tag within a string.
  .replace("/*SCRIPT*/", () => script.outputFiles[0].text.trim().replaceAll("</script", "<\\/script"));
writeFileSync(process.argv[2], page);
console.log(`${page.length} octets, ${gzipSync(page, { level: 9 }).length} compressed`);

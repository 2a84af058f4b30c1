// Builds the page's template: one HTML file with everything inline.
//   node build.mjs           writes template.html and LICENSES.txt
//   node build.mjs --check   exits 1 if the committed ones are not what would be built
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const TARGET = ["chrome123", "firefox120", "safari17.5"];

// styles.css first: it has the tokens; then what views bring along, by name.
function styles() {
  const names = readdirSync(join(here, "src")).filter((name) => name.endsWith(".css")).sort();
  const ordered = ["styles.css", ...names.filter((name) => name !== "styles.css")];
  return ordered.map((name) => readFileSync(join(here, "src", name), "utf8")).join("\n");
}

async function scripts() {
  const built = await build({
    entryPoints: [join(here, "src", "main.js")],
    absWorkingDir: here,
    bundle: true,
    format: "iife",
    minify: true,
    charset: "ascii",
    legalComments: "none",
    metafile: true,
    target: TARGET,
    write: false,
  });
  return { code: built.outputFiles[0].text.trim(), inputs: Object.keys(built.metafile.inputs) };
}

// The licence texts of exactly the packages that the bundle has code of.
function licences(inputs) {
  const packages = new Set();
  for (const input of inputs) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) packages.add(found[1]);
  }
  const parts = ["Packages whose code is part of template.html, with their licences."];
  for (const name of [...packages].sort()) {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).sort().find((each) => /^licen[cs]e/i.test(each));
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : "(no licence file)";
    parts.push(`${"=".repeat(80)}\n${name} ${about.version} (${about.license})\n\n${text}`);
  }
  return `${parts.join("\n\n")}\n`;
}

function page(template, css, code) {
  for (const part of [css, code]) {
    if (/<\/(script|style)|<!--/i.test(part)) throw new Error("a part would end its own element");
  }
  if (/@@[A-Z]+@@/.test(css + code)) throw new Error("a part has a placeholder");
  return template.replace("@@STYLES@@", () => css).replace("@@SCRIPT@@", () => code);
}

const css = (await transform(styles(), { loader: "css", minify: true, target: TARGET, charset: "ascii" })).code;
const { code, inputs } = await scripts();
const source = readFileSync(join(here, "src", "page.html"), "utf8");
const made = {
  "template.html": page(source, css.trim(), code),
  "LICENSES.txt": licences(inputs),
};
let differs = false;
for (const [name, text] of Object.entries(made)) {
  const path = join(here, name);
  if (process.argv.includes("--check")) {
    let old = "";
    try {
      old = readFileSync(path, "utf8");
    } catch {}
    if (old !== text) {
      console.error(`sim/viewer/${name} is not what the sources build: run node build.mjs, commit it`);
      differs = true;
    }
  } else {
    writeFileSync(path, text);
    console.log(`${name}: ${(text.length / 1024).toFixed(1)} KB`);
  }
}
process.exit(differs ? 1 : 0);

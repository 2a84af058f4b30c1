// What every driver of pages needs: a browser, pages that watch themselves, and checks run in turn.
//   node DRIVER.mjs PAGES NODE_MODULES CHROMIUM
// PAGES is a folder with pages. Each check prints one line of JSON: {"check", "is_ok", "why",
// "seconds", "figures"}. The checks are independent of each other; CHECKS=a,b runs some of them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const [folder, modules, chromiumPath] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(join(modules, "playwright-core", "index.mjs")).href);
const AXE = readFileSync(join(modules, "axe-core", "axe.min.js"), "utf8");
export const WIDE = { width: 1440, height: 900 };
export const NARROW = { width: 390, height: 844 };

export const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});

export function ensure(isSo, said) {
  if (!isSo) throw new Error(said);
}

export function same(found, wanted, what) {
  ensure(JSON.stringify(found) === JSON.stringify(wanted), `${what} is ${JSON.stringify(found)}, expected ${JSON.stringify(wanted)}`);
}

export function url(name, hash = "") {
  return `${pathToFileURL(join(folder, `${name}.html`)).href}${hash ? `#${hash}` : ""}`;
}

/** A page that is open. Its check fails if it logs an error, opens a dialog, or asks for anything but itself (and blobs, where it saves files). */
export async function open(context, name, hash = "", { saves = false } = {}) {
  const page = await context.newPage();
  page.troubles = [];
  page.on("console", (each) => ["error", "warning"].includes(each.type()) && page.troubles.push(each.text()));
  page.on("pageerror", (each) => page.troubles.push(each.stack));
  page.on("dialog", (each) => page.troubles.push(`a dialog: ${each.message()}`) && each.dismiss());
  page.on("request", (each) => {
    const isOwn = each.url().split("#")[0] === url(name) || (saves && /^blob:/.test(each.url()));
    if (!isOwn) page.troubles.push(`asks for ${each.url().slice(0, 200)}`);
  });
  await page.goto(url(name, hash));
  await page.waitForSelector("html[data-ready]", { state: "attached", timeout: 20_000 });
  return page;
}

export const settle = (page) => page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
export const nowAt = (page) => page.evaluate(() => Number(document.querySelector(".where-n").value));
export const press = async (page, ...keys) => {
  for (const key of keys) await page.keyboard.press(key);
  await settle(page);
};
export const click = async (page, what) => {
  await page.click(what);
  await settle(page);
};

export async function axe(page, where) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.filter((each) => ["serious", "critical"].includes(each.impact))
      .map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 200)}`).join(" | ")}`);
  });
  same(found, [], `axe, ${where}`);
}

/** Run checks, each a function of a context that gives its page; `more` is for the context. */
export async function runAll(checks, more = {}) {
  for (const name of process.env.CHECKS ? process.env.CHECKS.split(",") : Object.keys(checks)) {
    const context = await browser.newContext({ viewport: WIDE, colorScheme: "light", ...more });
    const begun = performance.now();
    let why = "";
    let figures;
    try {
      const page = await checks[name](context);
      same(page.troubles, [], "what the page complained about");
      figures = page.figures;
    } catch (error) {
      why = error.message.slice(0, 2000);
    }
    console.log(JSON.stringify({ check: name, is_ok: !why, why, seconds: +((performance.now() - begun) / 1000).toFixed(2), figures }));
    await context.close();
  }
  await browser.close();
}

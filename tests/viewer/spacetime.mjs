// Drives the space-time diagram, the tracks, the drawings saved as files and the sheet for paper.
//   node spacetime.mjs PAGES NODE_MODULES CHROMIUM
// As browser.mjs: PAGES has the pages and spacetime.json (see test_spacetime.py); one line of JSON
// for each check, and the checks are independent of each other.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { axe, click, ensure, folder, nowAt, open as openPage, press, runAll, same, settle, url } from "./driving.mjs";

const run = JSON.parse(readFileSync(join(folder, "spacetime.json"), "utf8"));
const open = (context, name, hash) => openPage(context, name, hash, { saves: true });
const jump = async (page, n) => {
  await page.evaluate((to) => { location.hash = `step=${to}`; }, n);
  await page.waitForFunction((to) => document.querySelector(".where-n").value === String(to), n);
  await settle(page);
};

// Everything is drawn, so that what is seen can be counted again from the trace.
async function showAll(page) {
  for (const each of await page.$$(".family[aria-pressed=false]")) await each.click();
  await settle(page);
}

async function seen(page) {
  const label = await page.getAttribute(".space-box .space-svg", "aria-label");
  const part = (pattern) => Number((pattern.exec(label)?.[1] ?? "0").replace(/,/g, ""));
  return { label, low: part(/events ([\d,]+) to/), high: part(/to ([\d,]+),/), events: part(/; ([\d,]+) events? on/), messages: part(/([\d,]+) messages?/), past: part(/([\d,]+) events? in sight led/) };
}

function messagesIn(low, high) {
  return run.messages.filter(([sent, end, from, to]) => sent <= high && (end === null || end >= low) && from !== to);
}

function pastOf(n, low) {
  const found = new Set();
  const open_ = [n];
  while (open_.length) for (const each of run.causes[open_.pop() - 1]) if (each >= low && !found.has(each)) { found.add(each); open_.push(each); }
  return found;
}

async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  const path = join(folder, `saved-${download.suggestedFilename()}`);
  await download.saveAs(path);
  return { name: download.suggestedFilename(), path, text: readFileSync(path, "utf8") };
}

async function standsAlone(context, file, least) {
  ensure(/^[A-Za-z0-9._-]+\.svg$/.test(file.name), `the file is called ${file.name}`);
  ensure(!/\bclass=|\bstyle=|var\(|light-dark|<script|\bon\w+=/.test(file.text.replace(/<(title|desc|text)[^>]*>[^<]*/g, "")), "the file needs styles, or has scripts");
  const page = await context.newPage();
  page.troubles = [];
  page.on("pageerror", (each) => page.troubles.push(each.stack));
  await page.goto(pathToFileURL(file.path).href);
  const found = await page.evaluate(() => ({
    root: document.documentElement.nodeName,
    trouble: document.querySelector("parsererror")?.textContent ?? "",
    shapes: document.querySelectorAll("path, line, rect, circle").length,
    colours: new Set([...document.querySelectorAll("[fill]")].map((each) => each.getAttribute("fill"))).size,
    black: [...document.querySelectorAll("rect")].slice(1).filter((each) => !each.getAttribute("fill") && !each.closest("clipPath")).length,
    text: document.querySelector("svg > text")?.textContent ?? document.documentElement.outerHTML.slice(0, 400),
  }));
  await page.close();
  same([found.root, found.trouble, found.black], ["svg", "", 0], "the file's root, its trouble and its shapes without a colour");
  ensure(found.colours >= 5, `the file has ${found.colours} colours`);
  ensure(found.shapes >= least, `the file has ${found.shapes} shapes`);
  return found.text;
}

const checks = {
  async draws_every_message_in_sight(context) {
    const page = await open(context, "run", `view=spacetime&step=${run.opening}`);
    await showAll(page);
    for (const n of [...run.drops.slice(0, 3), run.opening, 1, run.last]) {
      await jump(page, n);
      const { low, high, events, messages } = await seen(page);
      ensure(low <= n && n <= high, `event ${n} is not in sight: ${low} to ${high}`);
      same(events, high - low + 1, `the events in sight of ${n}`);
      const wanted = messagesIn(low, high);
      same(messages, wanted.length, `the messages that are told at ${n}`);
      same(await page.$$eval(".space-box .arrow", (all) => all.length), wanted.length, `the arrows at ${n}`);
      same(await page.$$eval(".space-box .arrow .cross", (all) => all.length), wanted.filter((each) => each[4] === "dropped").length, `the crosses at ${n}`);
    }
    return page;
  },

  async emphasises_what_led_here(context) {
    const page = await open(context, "run", `view=spacetime&step=${run.opening}`);
    for (const n of [run.opening, run.last - 3, 400, ...run.joins]) {
      await jump(page, n);
      const { low, past } = await seen(page);
      same(past, pastOf(n, low).size, `how many events led to ${n}`);
    }
    await jump(page, run.opening);
    ensure((await page.$$(".past")).length > 0, "nothing is emphasised");
    await click(page, ".space-past input");
    same((await page.$$(".past")).length, 0, "what is emphasised when that is switched off");
    return page;
  },

  async goes_to_events(context) {
    const page = await open(context, "run", "view=spacetime&step=600");
    await showAll(page);
    const { low } = await seen(page);
    const box = await page.locator(".space-box .space-svg").boundingBox();
    const spots = await page.$$eval(".space-box .glyph", (all) => all.map((each) => /translate\((\S+) (\S+)\)/.exec(each.getAttribute("transform")).slice(1).map(Number)));
    const onLane = (y) => spots.filter((each) => each[1] === y).length;
    const busiest = spots.map((each) => each[1]).sort((one, other) => onLane(other) - onLane(one))[0];
    const first = spots.filter(([x, y]) => x > 110 && y === busiest).sort((one, other) => one[0] - other[0])[1];
    await page.mouse.move(box.x + first[0], box.y + first[1]);
    await settle(page);
    const told = await page.textContent(".space-readout");
    const n = Number(/#([\d,]+)/.exec(told)[1].replace(",", ""));
    ensure(n >= low && n < 600, `the event pointed at is ${n}`);
    await page.mouse.click(box.x + first[0], box.y + first[1]);
    same(await nowAt(page), n, "the event that a click goes to");
    await press(page, "Shift+Tab", "Tab");
    for (let i = 0; i < 80 && (await page.evaluate(() => document.activeElement.getAttribute("role"))) !== "application"; i += 1) await page.keyboard.press("Tab");
    same(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "solid", "the diagram's focus ring");
    await press(page, "ArrowRight", "ArrowRight");
    same(await nowAt(page), n, "the event while another is only pointed at");
    const after = Number(/#([\d,]+)/.exec(await page.textContent(".space-readout"))[1].replace(",", ""));
    same(after, n + 1 + run.nodes.slice(n).indexOf(run.nodes[n - 1]), `where the arrow goes from ${n}`);
    await press(page, "Enter");
    same(await nowAt(page), after, "the event that Enter goes to");
    await press(page, "ArrowDown", "ArrowDown", "Enter");
    ensure(run.nodes[(await nowAt(page)) - 1] !== run.nodes[after - 1], "down stays on the lane");
    await press(page, "n");
    await click(page, ".space-text summary");
    const items = await page.$$eval(".space-text ol li", (all) => all.length);
    same(items, (await seen(page)).events, "the events in the text");
    await click(page, ".space-text ol li:nth-child(3) button");
    same(await nowAt(page), (await seen(page)).low + 2, "the event behind the third line of the text");
    return page;
  },

  async zooms_and_pans(context) {
    const page = await open(context, "run", "view=spacetime&step=600");
    await page.focus(".space-box");
    const first = await seen(page);
    await press(page, "+");
    const closer = await seen(page);
    ensure(closer.events < first.events, "plus does not zoom in");
    await press(page, "-", "-");
    ensure((await seen(page)).events > first.events, "minus does not zoom out");
    await press(page, "0");
    const all = await seen(page);
    same([all.low <= 5, all.high], [true, run.last], "what 0 shows");
    await press(page, ".");
    const back = await seen(page);
    ensure(back.low <= 600 && back.high >= 600, "the full stop does not come back");
    await press(page, "Shift+ArrowRight");
    ensure((await seen(page)).low > back.low, "Shift with an arrow does not pan");
    same(await nowAt(page), 600, "the event while panning");
    for (let i = 0; i < 250; i += 1) await page.keyboard.press("Shift+ArrowRight");
    await settle(page);
    same((await seen(page)).high, run.last, "the end of the axis");
    const empty = await page.$eval(".space-box .space-svg", (svg) => svg.clientWidth - Math.max(...[...svg.querySelectorAll(".glyph, .pill, .pile")].map((each) => each.getBoundingClientRect().right - svg.getBoundingClientRect().left)));
    ensure(empty < 60, `${empty} px are empty behind the last event`);
    await press(page, "n");
    const follows = await seen(page);
    ensure(follows.low <= 601 && follows.high >= 601, "a step does not bring its event into sight");
    const box = await page.locator(".space-box .space-svg").boundingBox();
    await page.mouse.move(box.x + 400, box.y + 200);
    await page.mouse.down();
    await page.mouse.move(box.x + 200, box.y + 200, { steps: 4 });
    await page.mouse.up();
    await settle(page);
    ensure((await seen(page)).low > follows.low, "dragging does not pan");
    same(await nowAt(page), 601, "the event behind dragging");
    return page;
  },

  async has_an_axis_of_time(context) {
    const page = await open(context, "run", "view=spacetime&step=900");
    await click(page, "button:has-text('virtual time')");
    ensure((await page.$$(".quiet-stretch")).length > 0, "no quiet stretch is marked");
    const ticks = await page.$$eval(".space-axis .tick", (all) => all.map((each) => Number(each.getAttribute("x1"))));
    ensure(ticks.every((each, i) => !i || each - ticks[i - 1] >= 70), `ticks stand too close: ${ticks}`);
    const { low, high } = await seen(page);
    ensure(low <= 900 && high >= 900, "the current event is not in sight");
    await page.focus(".space-box");
    await press(page, "0");
    same((await seen(page)).high, run.last, "the end of the axis");
    const [edge, width] = await page.evaluate(() => [Math.max(...[...document.querySelectorAll(".space-box .pill rect, .space-box .pile, .space-box .extra")].map((each) => each.getBBox().x + each.getBBox().width)), document.querySelector(".space-box .space-svg").clientWidth]);
    ensure(width - edge < 60, `the last event stands ${width - edge} px before the end`);
    return page;
  },

  async honours_the_filters(context) {
    const page = await open(context, "run", "view=spacetime&step=600");
    await showAll(page);
    const lanes = () => page.$$eval(".lane-name", (all) => all.map((each) => each.firstChild.textContent));
    const before = await lanes();
    ensure(before.includes("b1") && before.includes("c1"), `the lanes are ${before}`);
    await click(page, "summary:has-text('Nodes')");
    await click(page, ".picker-sheet label:has-text('c1')");
    same(await lanes(), before.filter((each) => each !== "c1"), "the lanes without c1");
    const { low, high } = await seen(page);
    const wanted = run.nodes.slice(low - 1, high).filter((each) => each !== "c1").length;
    same((await seen(page)).events, wanted, "the events without those of c1");
    await click(page, ".family:has-text('data messages')");
    ensure((await seen(page)).messages < messagesIn(low, high).length, "the messages are still there");
    return page;
  },

  async bears_many_events(context) {
    const page = await open(context, "long", "view=spacetime&step=50000");
    await page.focus(".space-box");
    const begun = performance.now();
    await press(page, "0");
    const took = performance.now() - begun;
    const count = await page.$$eval(".space-svg *", (all) => all.length);
    ensure(count < 4_000, `${count} elements are drawn`);
    ensure(/events, too dense to draw one by one/.test(await page.textContent(".space-note")), "it is not told that there are more");
    const worst = await page.evaluate(async () => {
      let most = 0;
      for (let i = 0; i < 10; i += 1) {
        const begin = performance.now();
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
        await new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
        most = Math.max(most, performance.now() - begin);
      }
      return most;
    });
    page.figures = { all_ms: Math.round(took), step_ms: Math.round(worst), elements: count };
    return page;
  },

  async tracks_tell_what_was(context) {
    const page = await open(context, "run", "view=tracks");
    for (const each of run.tracks) {
      await jump(page, each.n);
      const rows = await page.$$eval(".track", (all) => all.map((row) => [row.querySelector(".track-name").textContent, row.querySelector(".track-now").textContent]));
      const of = (name) => rows.find((row) => row[0] === name)?.[1];
      same(of("leader"), each.leader, `the leader behind ${each.n}`);
      same(of("ISR"), each.isr, `the ISR behind ${each.n}`);
      for (const [name, behind] of Object.entries(each.behind)) {
        const told = of(`${name} behind`);
        same(behind === null ? told : Number(/^([\d,]+) behind/.exec(told)?.[1].replace(",", "") ?? 0), behind === null ? "no leader" : behind, `how far ${name} is behind at ${each.n}`);
      }
      for (const [name, status] of Object.entries(each.status)) same(of(name), status, `the status of ${name} behind ${each.n}`);
      same(rows.filter((row) => ["met", "failed"].includes(row[1])).length, each.judged, `the expectations judged behind ${each.n}`);
    }
    return page;
  },

  async tracks_lead_to_events(context) {
    const page = await open(context, "run", "view=tracks&step=1");
    await click(page, ".track-name button:has(bdi:text-is('leader'))");
    same(await nowAt(page), run.leader_changes[0], "what the leader's name goes to");
    await click(page, ".track-name button:has(bdi:text-is('leader'))");
    same(await nowAt(page), run.leader_changes[1], "what it goes to next");
    const box = await page.locator(".track-svg.lag").first().boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + 8);
    const middle = 1 + (run.last - 1) / 2;
    ensure(Math.abs((await nowAt(page)) - middle) <= run.last / box.width + 1, `the middle of a row goes to ${await nowAt(page)}`);
    const [x, play] = await page.$eval(".track-svg.lag", (each) => [each.clientWidth / 2, Number(each.querySelector(".playhead").getAttribute("x1"))]);
    ensure(Math.abs(x - play) < 2, `the playhead is at ${play}, not ${x}`);
    const unnamed = await page.$$eval(".track-svg[role=img]", (all) => all.filter((each) => !/: .+\.$/s.test(each.getAttribute("aria-label"))).length);
    same(unnamed, 0, "the number of rows without words");
    return page;
  },

  async saves_drawings(context) {
    const page = await open(context, "run", `view=spacetime&step=${run.opening}`);
    await page.emulateMedia({ colorScheme: "dark" });
    const diagram = await saved(page, ".space-tools button:has-text('Save SVG')");
    const title = await standsAlone(context, diagram, 60);
    ensure(title.includes(run.scenario), `the drawing is called ${title}`);
    ensure(diagram.text.includes('fill="rgb(29, 31, 35)"') && !diagram.text.includes("rgb(230, 228, 223)"), "it is not in light colours");
    await click(page, "#tab-log");
    const strips = await saved(page, ".save-strips");
    await standsAlone(context, strips, 12);
    ensure(/<text[^>]*>b1</.test(strips.text) && /HW \d/.test(strips.text), "the logs' names or marks are not in the file");
    const odd = await open(context, "hostile", "view=spacetime&step=40");
    const nasty = await saved(odd, ".space-tools button:has-text('Save SVG')");
    await standsAlone(context, nasty, 20);
    same(odd.troubles, [], "what the hostile page complained about");
    return page;
  },

  async prints_a_sheet(context) {
    for (const name of ["run", "hostile"]) {
      const page = await open(context, name, "view=events");
      // As wide as A4 is within its margins.
      await page.setViewportSize({ width: 688, height: 1000 });
      await page.emulateMedia({ media: "print", colorScheme: "dark" });
      await page.waitForSelector("#print h1");
      ensure(!(await page.isVisible("#app")), "the page itself is printed, too");
      const beyond = await page.$$eval("#print *", (all) => all.filter((each) => !each.closest("svg") || each.localName === "svg").filter((each) => each.getBoundingClientRect().right > 689).map((each) => each.outerHTML.slice(0, 120)));
      same(beyond, [], `what is cut off (${name})`);
      same(await page.$eval("#print", (each) => getComputedStyle(each).color), "rgb(0, 0, 0)", "the ink");
      ensure((await page.$$("#print .space-svg")).length === 1, "the diagram is not printed");
      same(await page.evaluate(() => window.hacked), undefined, "what hostile text did");
      if (name === "run") {
        const text = await page.textContent("#print");
        ensure(text.includes(run.scenario) && text.includes(run.verdict), "the head is not printed");
        for (const each of run.chains) ensure(text.includes(each), `not printed: ${each}`);
        same(await page.$$eval("#print .strip", (all) => all.length), run.replicas, "the number of logs");
      }
      await page.emulateMedia({ media: "screen" });
      await page.waitForFunction(() => !document.querySelector("#print").children.length);
      same(page.troubles, [], `what ${name} complained about`);
    }
    return open(context, "run", "");
  },

  async bears_hostile_text(context) {
    const page = await open(context, "hostile", "view=spacetime&step=30");
    await showAll(page);
    await click(page, "button:has-text('virtual time')");
    await page.focus(".space-box");
    await press(page, "0", "ArrowDown", "ArrowRight", "Enter");
    await click(page, ".space-text summary");
    await click(page, "#tab-tracks");
    await click(page, ".tracks button:has-text('virtual time')");
    for (const each of await page.$$(".track-group h3 button")) await each.click();
    for (const each of await page.$$(".track-group h3 button")) await each.click();
    same(await page.$$eval(".empty[role=alert]", (all) => all.length), 0, "views that failed");
    same(await page.evaluate(() => window.hacked), undefined, "what hostile text did");
    return page;
  },

  async has_no_serious_findings_of_axe(context) {
    const page = await open(context, "run", "view=spacetime&step=600");
    for (const each of await page.$$(".space-text summary")) await each.click();
    await axe(page, "diagram with its text and signs");
    await click(page, "button:has-text('virtual time')");
    await page.focus(".space-box");
    await press(page, "0");
    await axe(page, "diagram, all of the time");
    await click(page, "#tab-tracks");
    await click(page, ".tracks button:has-text('virtual time')");
    await axe(page, "tracks by time");
    await page.setViewportSize({ width: 390, height: 844 });
    await settle(page);
    await axe(page, "tracks, narrow");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    ensure(wide <= 390, `the page is ${wide} px wide`);
    return page;
  },
};

await runAll(checks, { acceptDownloads: true });

// Drives pages of the viewer in a real browser, from disk.
//   node browser.mjs PAGES NODE_MODULES CHROMIUM
// PAGES is a folder with the pages and expected.json (see pages.py); what it prints: driving.mjs.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { NARROW, WIDE, axe, ensure, folder, nowAt, open, press, runAll, same, url } from "./driving.mjs";

const expected = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));

// Tools -------------------------------------------------------------------------------------------

const hashOf = async (page) => {
  await page.waitForTimeout(200);
  return Object.fromEntries(new URLSearchParams((await page.evaluate(() => location.hash)).slice(1)));
};
const tabIds = (page) => page.$$eval(".tabs [role=tab]", (all) => all.map((each) => each.id));

// Checks ------------------------------------------------------------------------------------------

const checks = {
  async opens(context) {
    const page = await open(context, "run");
    same(await page.title(), `${expected.scenario} – Leaderfall`, "the title");
    same(await page.textContent("h1"), expected.scenario, "the heading");
    same(await nowAt(page), expected.opening, "the opening event");
    same(await page.$$eval("main, [role=main]", (all) => all.length), 1, "the number of main landmarks");
    return page;
  },

  async steps(context) {
    const page = await open(context, "run", "step=100");
    const said = async () => page.$eval(".line.here .line-n", (each) => Number(each.textContent));
    await press(page, "n");
    same([await nowAt(page), await said()], [101, 101], "the event behind n");
    await press(page, "p", "ArrowLeft");
    same([await nowAt(page), await said()], [99, 99], "the event behind p and left");
    await press(page, "ArrowRight", "Home");
    same(await nowAt(page), 1, "the event behind Home");
    await press(page, "p", "p");
    same(await nowAt(page), 0, "the event before the first");
    await press(page, "End", "n");
    same(await nowAt(page), expected.last, "the event behind End");
    ensure((await page.textContent(".message")).includes("last event"), "the end is not told");
    await page.click("button[aria-label='previous event']");
    same(await nowAt(page), expected.last - 1, "the event behind the button");
    return page;
  },

  async jumps_to_violations(context) {
    const page = await open(context, "run", "step=1");
    const seen = [];
    for (let i = 0; i < expected.bad.length; i += 1) {
      await press(page, "v");
      seen.push(await nowAt(page));
    }
    same(seen, expected.bad, "what v goes to");
    await press(page, "v");
    same(await nowAt(page), expected.bad[expected.bad.length - 1], "v behind the last one");
    await press(page, "V");
    same(await nowAt(page), expected.bad[expected.bad.length - 2], "what V goes to");
    await press(page, "Home", "f");
    same(await nowAt(page), expected.falls[0], "what f goes to");
    await press(page, "w");
    ensure(await page.isVisible("#view-why"), "w does not show why");
    return page;
  },

  async tells_why(context) {
    const page = await open(context, "run", `step=${expected.chain.n}`);
    await press(page, "w");
    const title = await page.textContent(".chain h3");
    same(title, expected.chain.title, "the chain's title");
    same(await page.$$eval(".chain li", (all) => all.length), expected.chain.count, "the number of its sentences");
    const link = await page.$(".chain .event-link:not([aria-current])");
    const n = Number((await link.textContent()).slice(1));
    await link.click();
    same(await nowAt(page), n, "the event behind a link of the chain");
    await page.evaluate((to) => { location.hash = `step=${to}`; }, expected.line.n);
    await page.waitForSelector(`.cause.here:has-text("#${expected.line.n}")`);
    const line = await page.$$eval(".causes .cause-head .event-link", (all) => all.map((each) => Number(each.textContent.slice(1))));
    same(line, expected.line.numbers.slice(0, line.length), "the line of causes");
    ensure(line.length === Math.min(60, expected.line.numbers.length), `${line.length} causes are shown`);
    return page;
  },

  async shows_the_state_behind_any_event(context) {
    const page = await open(context, "run");
    for (const { n, logs } of expected.logs) {
      await page.evaluate((to) => { location.hash = `step=${to}`; }, n);
      await page.waitForFunction((to) => document.querySelector(".where-n").value === String(to), n);
      const seen = await page.$$eval(".strip", (all) => all.map((each) => {
        const said = each.getAttribute("aria-label");
        const hw = /high watermark (\d+)/.exec(said);
        return [/^Log of ([^:]+):/.exec(said)[1], /records: ([^;]*)/.exec(said)?.[1] ?? "", hw ? Number(hw[1]) : null, Number(/log end (\d+)/.exec(said)[1])];
      }));
      same(seen, logs, `the logs behind event ${n}`);
    }
    return page;
  },

  async follows_a_deep_link(context) {
    const page = await open(context, "run", "step=812&node=b2&view=log");
    same(await nowAt(page), 812, "the event");
    same(await page.textContent(".log-head .node-name[aria-pressed=true]"), "b2", "the selected node");
    same(await hashOf(page), { step: "812", node: "b2", view: "log" }, "the address");
    await press(page, "N");
    const n = await nowAt(page);
    ensure(n > 812, "N does not go on");
    same(await page.textContent(".now-node"), "b2", "the node of the event that N goes to");
    same((await hashOf(page)).step, String(n), "the step in the address");
    await page.evaluate(() => { location.hash = "step=99999999&node=nobody&view=nothing"; });
    await page.waitForTimeout(100);
    same(await nowAt(page), expected.last, "the event of an address beyond the end");
    ensure(await page.isVisible("#view-log"), "an address with an unknown view shows none");
    return page;
  },

  async keeps_filters_over_a_re_run(context) {
    const page = await open(context, "run");
    await page.fill(".list-text", "fetch");
    await page.click("summary:has-text('Kinds')");
    await page.click(".picker-sheet label:has-text('transmit')");
    const told = await page.textContent(".list-count");
    ensure(/^[\d,]+ of /.test(told), `the filter is not told: ${told}`);
    ensure(await page.$$eval(".line-text", (all) => all.every((each) => /fetch/i.test(each.textContent))), "a line without the text");
    await page.reload();
    await page.waitForSelector("html[data-ready]", { state: "attached" });
    same(await page.textContent(".list-count"), told, "the count behind a reload");
    const again = await open(context, "again");
    same(await again.inputValue(".list-text"), "fetch", "the filter in the page of a re-run");
    const other = await open(context, "hostile");
    same(await other.inputValue(".list-text"), "", "the filter in the page of another scenario");
    await again.click("button:has-text('clear')");
    same(await again.textContent(".list-count"), `${expected.last.toLocaleString("en-US")} events`, "the count without filters");
    return page;
  },

  async works_with_the_keyboard_alone(context) {
    const page = await open(context, "run", "step=50");
    const focused = () => page.evaluate(() => {
      const each = document.activeElement;
      return each.getAttribute("role") || each.type || each.tagName;
    });
    const tabTo = async (wanted) => {
      for (let i = 0; i < 60; i += 1) {
        await page.keyboard.press("Tab");
        if ((await focused()) === wanted) return;
      }
      throw new Error(`Tab never comes to ${wanted}`);
    };
    await tabTo("range");
    await press(page, "ArrowRight", "ArrowRight");
    same(await nowAt(page), 52, "the event behind the slider's arrows");
    await tabTo("listbox");
    await press(page, "ArrowDown", "ArrowDown", "ArrowUp");
    same(await nowAt(page), 53, "the event behind the list's arrows");
    const active = await page.evaluate(() => document.activeElement.getAttribute("aria-activedescendant"));
    same(active, "event-53", "the list's active line");
    const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    same(ring, "solid", "the focus ring");
    await press(page, "g");
    await page.keyboard.type("3.5s");
    await press(page, "Enter");
    same(await nowAt(page), expected.at_3_5_s, "the event of 3.5s");
    await press(page, "g");
    await page.keyboard.type("1e9");
    await press(page, "Enter");
    same(await nowAt(page), expected.at_3_5_s, "the event behind a number that is none");
    await press(page, "/");
    await page.keyboard.type("truncate orders-0");
    await press(page, "Home", "End", "Enter");
    ensure((await page.textContent(".now-text")).includes("truncate orders-0"), "the search finds nothing");
    await press(page, "Escape", "?");
    ensure(await page.isVisible("dialog.help"), "? shows no help");
    await press(page, "n");
    await press(page, "Escape");
    ensure(!(await page.isVisible("dialog.help")), "Escape does not close the help");
    await tabTo("tab");
    await press(page, "d");
    ensure(await page.isChecked(".only input"), "d does not show only what changed");
    return page;
  },

  async fits_a_narrow_screen(context) {
    const page = await open(context, "run");
    await page.setViewportSize(NARROW);
    await page.waitForSelector(".of-1");
    for (const id of await tabIds(page)) {
      await page.click(`#${id}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      ensure(wide <= NARROW.width, `${id}: the page is ${wide} px wide`);
    }
    await page.click("#tab-state");
    same((await hashOf(page)).view, "state", "the view in the address");
    const small = await page.$$eval(".tool", (all) => all.filter((each) => each.offsetHeight < 34).length);
    same(small, 0, "the number of buttons too small for a finger");
    return page;
  },

  async prints(context) {
    const page = await open(context, "run");
    const size = (await page.pdf({ format: "A4" })).length;
    ensure(size > 15_000, `the PDF has ${size} bytes`);
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    await page.waitForSelector("#print .strip", { state: "visible" });
    ensure(!(await page.isVisible(".list")), "the list is printed");
    same(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)", "the colour of the paper");
    return page;
  },

  async shows_hostile_text_as_text(context) {
    const page = await open(context, "hostile");
    for (const n of [1, 2, 3, expected.hostile_last]) {
      await page.evaluate((to) => { location.hash = `step=${to}`; }, n);
      await page.waitForFunction((to) => document.querySelector(".where-n").value === String(to), n);
      for (const id of await tabIds(page)) {
        await page.click(`#${id}`);
        same(await page.$$eval(".empty[role=alert]", (all) => all.map((each) => each.textContent)), [], `views that failed (${id})`);
      }
    }
    same(await page.evaluate(() => window.hacked), undefined, "what hostile text did");
    same(await page.$$eval("img, iframe, object, embed, link, base, script[src], #app script, [onerror], form", (all) => all.length), 0, "the number of elements made of text");
    // eslint-disable-next-line no-control-regex
    const raw = await page.evaluate(() => /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.exec(document.body.innerText)?.[0].charCodeAt(0) ?? 0);
    same(raw, 0, "the first raw control in what is shown");
    ensure((await page.textContent("body")).includes("<script>window.hacked"), "the text is not there as text");
    const longest = await page.$$eval("#app *", (all) => Math.max(...all.map((each) => (each.children.length ? 0 : each.textContent.length))));
    ensure(longest < 4_000, `a text of ${longest} characters is shown whole`);
    return page;
  },

  async draws_a_part_of_what_is_many(context) {
    const page = await open(context, "many", "view=log");
    const count = () => page.$$eval("#view-log .partition", (all) => all.length);
    same(await count(), 30, "the number of partitions that are drawn");
    same(await page.$$eval(".chips > li", (all) => all.length), 101, "the nodes that are drawn, and the line below");
    await page.click("#view-log .more button");
    same(await count(), 60, "the number of partitions when more are asked for");
    return page;
  },

  async keeps_widths_while_it_is_printed(context) {
    const page = await open(context, "run");
    for (const id of await tabIds(page)) {
      await page.click(`#${id}`);
      await page.emulateMedia({ media: "print" });
      await page.waitForTimeout(100);
      await page.emulateMedia({ media: "screen" });
    }
    same(page.troubles, [], "what the page complained about");
    return page;
  },

  async says_that_a_trace_was_cut(context) {
    const page = await open(context, "cut");
    ensure(/cut short behind event \d+/.test(await page.textContent(".notices")), "no notice");
    same(await page.textContent(".verdict"), "cut short", "the verdict");
    await press(page, "Home", "n");
    same(await nowAt(page), 2, "the event behind n");
    return page;
  },

  async says_what_a_trace_of_level_events_lacks(context) {
    const page = await open(context, "events");
    ensure(/does not keep the changes/.test(await page.textContent(".notices")), "no notice");
    ensure(/keeps no fields/.test(await page.textContent("#view-state")), "the state does not say so");
    same(await page.$$eval(".strip", (all) => all.length), 2, "the number of logs");
    return page;
  },

  async says_that_it_is_damaged(context) {
    const page = await context.newPage();
    page.troubles = [];
    await page.goto(url("damaged"));
    await page.waitForSelector("h1");
    same(await page.textContent("h1"), "This page cannot be opened", "the heading");
    return page;
  },

  async may_load_nothing(context) {
    const page = await open(context, "run");
    const policy = await page.getAttribute("meta[http-equiv='Content-Security-Policy']", "content");
    ensure(policy.startsWith("default-src 'none';"), `the policy is ${policy}`);
    const answer = await page.evaluate(() => fetch("data:text/plain,x").then(() => "fetched", () => "refused"));
    same(answer, "refused", "a request");
    page.troubles = [];
    return page;
  },

  async has_no_serious_findings_of_axe(context) {
    const page = await open(context, "run");
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const id of await tabIds(page)) {
        await page.click(`#${id}`);
        await axe(page, `${id}, ${scheme}`);
      }
    }
    await press(page, "?");
    await axe(page, "help");
    await press(page, "Escape");
    await page.setViewportSize(NARROW);
    await page.waitForSelector(".of-1");
    await axe(page, "narrow");
    return page;
  },

  async switches_colours(context) {
    const page = await open(context, "run");
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.click(".aside .tool >> nth=0");
    const light = await paper();
    await page.click(".aside .tool >> nth=0");
    const dark = await paper();
    ensure(light !== dark, "light and dark are the same");
    await page.reload();
    await page.waitForSelector("html[data-ready]", { state: "attached" });
    same(await paper(), dark, "the paper behind a reload");
    return page;
  },

  async opens_a_long_run(context) {
    const begun = performance.now();
    const page = await open(context, "long");
    const seconds = (performance.now() - begun) / 1000;
    const rows = await page.$$eval(".line", (all) => all.length);
    ensure(rows > 20 && rows < 200, `${rows} lines are in the document`);
    const worst = await page.evaluate(async () => {
      const box = document.querySelector(".list-box");
      let most = 0;
      for (let i = 0; i < 30; i += 1) {
        const begin = performance.now();
        box.scrollTop = (i / 30) * box.scrollHeight;
        await new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
        most = Math.max(most, performance.now() - begin);
      }
      return most;
    });
    const figures = { load_s: +seconds.toFixed(2), scroll_ms: Math.round(worst), mb: +(statSync(join(folder, "long.html")).size / 1e6).toFixed(2) };
    page.figures = figures;
    return page;
  },
};

await runAll(checks);

// Drives the X-ray and the compare panel in a real browser, from disk.
//   node panels.mjs PAGES NODE_MODULES CHROMIUM
// PAGES is a folder with the pages and expected.json (see panel_pages.py). Prints one line of JSON
// for each check, as browser.mjs does.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { NARROW, WIDE, axe, browser, click, ensure, folder, nowAt as step, open, press, runAll, same, settle, url } from "./driving.mjs";

const { xray, compare } = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));

// Tools -------------------------------------------------------------------------------------------

const plainNumber = (text) => Number(text.replaceAll(",", ""));
const texts = (page, what) => page.$$eval(what, (all) => all.map((each) => each.textContent.replace(/\s+/g, " ").trim()));
const log = (name) => xray.logs.find((each) => each.name === name);

async function ask(page, label, value) {
  await page.fill(`input[aria-label='${label}']`, String(value));
  await settle(page);
}

/** What the page says of a look-up. */
async function told(page) {
  const [seek, probes, records, bytes] = await texts(page, ".xr-figures dd:nth-of-type(1)");
  return { text: await page.textContent(".xr-verdict"), seek, probes, records, bytes };
}

async function agrees(page, each, what) {
  const found = await told(page).catch(() => ({}));
  const verdict = await page.textContent(".xr-verdict");
  same(verdict, each.text, `${what}: the verdict`);
  ensure(await page.$(`.xr-verdict.${each.verdict}`), `${what}: its look is not ${each.verdict}`);
  if (each.seek === null) return;
  same([found.seek, found.probes, found.records, found.bytes].map(plainNumber),
    [each.seek, each.probes, each.records_scanned, each.bytes_scanned], `${what}: seek, probes, records, bytes`);
}

const where = async (page) => (await page.textContent(".cmp-where")).match(/#[\d,]+/g).map((each) => plainNumber(each.slice(1)));

// Checks ------------------------------------------------------------------------------------------

const checks = {
  async looks_up_offsets(context) {
    const page = await open(context, "xray", "view=xray");
    for (const each of xray.logs) {
      await click(page, `.xr-tabs >> text="${each.name}"`);
      for (const wanted of each.lookups) {
        await ask(page, "Offset", wanted.target);
        await agrees(page, wanted, `${each.name}, offset ${wanted.target}`);
      }
    }
    return page;
  },

  async looks_up_times(context) {
    const page = await open(context, "xray", "view=xray");
    for (const each of xray.logs.slice(0, 3)) {
      await click(page, `.xr-tabs >> text="${each.name}"`);
      for (const wanted of each.times) {
        await ask(page, "Timestamp in ms", wanted.target);
        await agrees(page, wanted, `${each.name}, ${wanted.target} ms`);
      }
    }
    return page;
  },

  async tells_probes_in_order(context) {
    const page = await open(context, "xray", "view=xray");
    await ask(page, "Offset", 233);
    const [segments, entries] = await page.$$eval(".xr-probes", (all) => all.map((each) => [...each.children].map((item) => item.textContent.replace(/\s+/g, " "))));
    ensure(segments.length >= 2 && entries.length >= 3, `${segments.length} and ${entries.length} probes`);
    [segments, entries].forEach((list) => list.forEach((said, i) => {
      const [, n, target, sign, value, goes] = /^(\d+)\D+\d+ ([\d,]+) ([<≥]) ([\d,]+) (.*)$/.exec(said) || [];
      same(Number(n), i + 1, `the number of "${said}"`);
      same(target, "233", `the target of "${said}"`);
      same(sign, 233 < plainNumber(value) ? "<" : "≥", `the sign of "${said}"`);
      same(goes.trim(), sign === "<" ? "to the left" : "keep it, to the right", `where "${said}" goes`);
    }));
    same(await texts(page, ".xr-ladder >> nth=1 >> .xr-dot-n"), entries.map((_, i) => String(i + 1)), "the numbers drawn");
    return page;
  },

  async slides_with_keys(context) {
    const page = await open(context, "xray", "view=xray&step=50");
    await page.focus("#xr-offset");
    await press(page, "Home", "ArrowRight", "ArrowRight", "ArrowUp");
    same(await page.inputValue("input[aria-label=Offset]"), "3", "the offset behind the keys");
    await press(page, "End");
    const end = log("b1/orders-0").end;
    same(await page.inputValue("#xr-offset"), String(end), "the offset behind End");
    ensure((await page.textContent(".xr-verdict")).includes("is the log end"), "the log end is not told");
    const before = await page.inputValue("#xr-offset");
    await page.focus("#xr-time");
    await press(page, "Home", "ArrowRight");
    ensure((await page.textContent(".xr-step >> nth=1")).includes("time index"), "no step of the time index");
    ensure((await page.inputValue("#xr-offset")) !== before, "the offset does not follow the time");
    same(await step(page), 50, "the page's own step");
    await click(page, ".xr-mark.hw");
    ensure((await page.textContent(".xr-slider.on")).includes("Look up an offset"), "a mark does not ask for its offset");
    return page;
  },

  async goes_through_tabs(context) {
    const page = await open(context, "xray", "view=xray&step=50");
    same(await texts(page, "[aria-label='Logs of the run'] [role=tab]"), xray.logs.map((each) => each.name), "the logs");
    same(await texts(page, "[aria-label='Segments'] [role=tab]"), log("b1/orders-0").files, "the segments");
    ensure(log("b1/orders-0").files.every((each) => /^\d{20}\.log$/.test(each)), "a name has not 20 digits");
    await page.focus("[aria-label='Segments'] [aria-selected=true]");
    await press(page, "Home", "ArrowRight");
    const now = await page.textContent("[aria-label='Segments'] [aria-selected=true]");
    same(now, log("b1/orders-0").files[1], "the segment behind the keys");
    ensure((await page.textContent(".xr-verdict")).startsWith(now), "the look-up is not in that segment");
    await page.focus("[aria-label='Logs of the run'] [aria-selected=true]");
    await press(page, "ArrowRight");
    same(await texts(page, "[aria-label='Logs of the run'] [aria-selected=true]"), [xray.logs[1].name], "the log behind the keys");
    same(await step(page), 50, "the page's own step");
    return page;
  },

  async shows_bytes_of_the_file(context) {
    const page = await open(context, "xray", "view=xray");
    for (const each of xray.logs) {
      await click(page, `.xr-tabs >> text="${each.name}"`);
      await ask(page, "Offset", each.bytes[0]);
      ensure((await page.textContent("#xr-hex")).includes("The batch that the look-up found"), `${each.name}: not the found batch`);
      same((await texts(page, ".xr-hexes .xr-byte")).join(""), each.bytes[1].slice(0, 2048), `${each.name}: the bytes`);
    }
    await page.focus(".xr-fields button");
    await press(page, "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown");
    same(await page.textContent(".xr-fields button.on .xr-field"), "base offset", "the field behind the keys");
    same((await texts(page, ".xr-hexes .xr-byte.on")).length, 8, "the number of bytes that are marked");
    ensure(/^base offset \d+: offset of the first record\. Bytes 13 to 20/.test((await page.textContent(".xr-telling")).replace(/\s+/g, " ")), await page.textContent(".xr-telling"));
    await page.hover(".xr-hexes .xr-byte >> nth=0");
    same(await page.textContent(".xr-fields button.on .xr-field"), "magic", "the field under the pointer");
    return page;
  },

  async previews_crashes(context) {
    const page = await open(context, "xray", "view=xray");
    let seen = 0;
    for (const each of xray.logs.filter((one) => one.at_risk !== null)) {
      await click(page, `.xr-tabs >> text="${each.name}"`);
      await ask(page, "Offset", Math.max(0, each.end - 1));
      await click(page, "text=Process killed");
      ensure((await page.textContent(".xr-preview")).includes("loses nothing"), "what a kill does is not told");
      same((await page.$$(".xr-page.lost")).length, 0, "lost pages of a kill");
      const dirty = (await page.$$(".xr-file-row .xr-page.dirty")).length;
      await click(page, "text=Power lost");
      const said = await page.textContent(".xr-preview");
      same((await page.$$(".xr-page.lost")).length, dirty, `${each.name}: lost pages`);
      if (each.at_risk) {
        seen += 1;
        same(plainNumber(/([\d,]+) records? may go/.exec(said)[1]), each.at_risk, `${each.name}: records at risk`);
        ensure(dirty > 0, `${each.name}: no page is dirty`);
      } else ensure(said.includes("No record goes."), `${each.name}: ${said}`);
    }
    ensure(seen > 0, "no log has anything at risk");
    return page;
  },

  async draws_both_ways(context) {
    const page = await open(context, "xray", "view=xray");
    const counts = () => texts(page, ".xr-counts td.on:not(.xr-calls)");
    const steps = async () => (await page.$$(".xr-arrow")).length;
    same(await counts(), ["2", "0", "2"], "switches and copies of sendfile");
    same(await steps(), 3, "its steps");
    await page.focus("#xr-transfer input[type=radio]:checked");
    await press(page, "ArrowRight");
    same([await counts(), await steps()], [["4", "2", "2"], 4], "read and send");
    same((await page.$$(".xr-arrow.cpu")).length, 2, "copies by the CPU that are drawn");
    await press(page, "ArrowLeft");
    await page.check("text=with TLS");
    await settle(page);
    same(await counts(), ["4", "2", "2"], "switches and copies with TLS");
    ensure(await page.isDisabled("#xr-transfer input[type=radio] >> nth=0"), "sendfile can be chosen with TLS");
    ensure((await page.textContent("#xr-transfer")).includes("leaderfall xray --transfer"), "how to measure is not told");
    return page;
  },

  async lists_the_directory(context) {
    const page = await open(context, "xray", "view=xray");
    for (const each of xray.logs) {
      await click(page, `.xr-tabs >> text="${each.name}"`);
      const others = await page.$("#xr-files summary");
      if (others && !(await page.$("#xr-files details[open]"))) await others.click();
      const names = await texts(page, "#xr-files table:first-of-type tbody tr:not(.absent) th code, #xr-files .xr-names code");
      ensure(each.on_disk.every((name) => names.includes(name)), `${each.name}: not all of ${each.on_disk} are in ${names}`);
    }
    return page;
  },

  async folds_the_book(context) {
    const page = await open(context, "xray", "view=xray");
    ensure(!(await page.isVisible(".xr-book-parts")), "the book is open");
    await page.focus(".xr-book summary");
    await press(page, "Enter");
    ensure((await page.textContent(".xr-book-parts")).includes("diary"), "the book is empty");
    ensure((await page.textContent(".xr-facts")).includes("512 the run's configuration"), await page.textContent(".xr-facts"));
    return page;
  },

  async goes_to_the_divergence(context) {
    const page = await open(context, "compare", "view=compare&step=1");
    await click(page, "text=To the divergence");
    const { divergence, states } = compare;
    same(await where(page), [divergence.at_a, divergence.at_b], "the divergence");
    ensure(await page.$("tr.here.parting"), "the divergence is not marked");
    ensure((await page.textContent(".cmp-told")).includes(divergence.text.slice(0, 40)), "its sentence is missing");
    ensure((await page.textContent(".cmp-divergence")).includes(divergence.origin.text.slice(0, 40)), "what it goes back to is missing");
    const parting = states.find((each) => each.what === "parting");
    await click(page, "text=Where replicas differ first");
    same(await where(page), [parting.a, parting.b], "the first point where replicas differ");
    const rows = await page.$$eval(".cmp-replica", (all) => all.map((each) => [each.querySelector("bdi").textContent, each.classList.contains("unlike"), each.querySelectorAll(".strip").length]));
    const wanted = parting.partitions.flatMap((each) => each.replicas.map((replica) => [replica.node, replica.unlike.length > 0, 2]));
    same(rows, wanted, "the replicas");
    await click(page, "text=To the end");
    same(await where(page), [states[states.length - 1].a, states[states.length - 1].b], "the end");
    return page;
  },

  async keeps_both_sides_aligned(context) {
    const page = await open(context, "compare", "view=compare&step=1");
    const partner = new Map(compare.pairs.a.map((a, i) => [a, compare.pairs.b[i]]));
    await page.focus("body");
    for (const start of [400, compare.divergence.at_a - 3, compare.divergence.at_a + 40]) {
      await page.evaluate((n) => { location.hash = `#step=${n}&view=compare`; }, start);
      await settle(page);
      for (let i = 0; i < 6; i += 1) {
        const [a, b] = await where(page);
        same(await step(page), a, "the page's own step");
        if (partner.has(a) && !(await page.$("tr.here.moved"))) same(b, partner.get(a), `the partner of A #${a}`);
        await press(page, "n");
      }
    }
    await click(page, "text=To the divergence");
    const [a, b] = await where(page);
    await page.focus(".cmp-aligned");
    await press(page, "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp");
    same(await where(page), [a, b], "the place behind two rows down and two up");
    await click(page, "text=↓ difference");
    ensure(!(await page.$("tr.here.same")), "the next difference is none");
    return page;
  },

  async tells_what_came_of_it(context) {
    const page = await open(context, "compare", "view=compare&step=1");
    const said = await page.textContent(".cmp");
    for (const item of [...compare.findings.a, ...compare.findings.b]) ensure(said.includes(item.text), `"${item.text}" is missing`);
    for (const each of compare.header) ensure(said.includes(each.path), `"${each.path}" is missing`);
    const { n } = compare.findings.a[0];
    await click(page, `.cmp-outcome .cmp-place:text-is("A #${n}")`);
    same(await step(page), n, "the event behind the button");
    return page;
  },

  async says_that_runs_are_the_same(context) {
    const page = await open(context, "same", "view=compare");
    ensure((await page.textContent(".cmp-told.same")).includes("the same events at the same times"), "they are not the same");
    same((await page.$$(".cmp-replica.unlike")).length, 0, "replicas that are unlike");
    ensure(!(await page.$("text=To the divergence")), "there is a divergence to go to");
    return page;
  },

  async hides_what_is_not_there(context) {
    const page = await open(context, "compare", "");
    ensure(!(await page.$("#tab-xray")), "the X-ray of a page without one");
    await page.goto("about:blank");
    const other = await open(context, "xray", "");
    ensure(!(await other.$("#tab-compare")), "a comparison with nothing");
    await press(other, "c");
    ensure((await other.textContent(".message")).length > 10, "c says nothing");
    return other;
  },

  async shows_hostile_text_as_text(context) {
    const page = await open(context, "hostile", "view=xray");
    for (const hash of ["view=xray", "view=compare"]) {
      await page.evaluate((to) => { location.hash = `#${to}`; }, hash);
      await settle(page);
      ensure((await page.textContent("main")).includes("<img src=x"), `${hash}: the text is missing`);
      await page.$$eval("details", (all) => all.forEach((each) => { each.open = true; }));
      await settle(page);
      const found = await page.evaluate(() => [window.hacked, document.querySelectorAll("main img, main script, main iframe, main [onerror]").length,
        // eslint-disable-next-line no-control-regex
        /[\u202a-\u202e\u2066-\u2069\u001b\u0000\u200b]/.test(document.body.textContent)]);
      same(found, [null, 0, false].map((each) => (each === null ? undefined : each)), `${hash}: what it did`);
    }
    return page;
  },

  async is_accessible(context) {
    for (const [name, view] of [["xray", "xray"], ["compare", "compare"]]) {
      const page = await open(context, name, `view=${view}`);
      await page.$$eval("details", (all) => all.forEach((each) => { each.open = true; }));
      for (const scheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: scheme });
        for (const size of [WIDE, NARROW]) {
          await page.setViewportSize(size);
          await settle(page);
          await axe(page, `${view}, ${scheme}, ${size.width} px`);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          ensure(over <= 0, `${view} is ${over} px too wide at ${size.width} px`);
        }
      }
      if (view === "xray") {
        await page.click("text=Power lost");
        await axe(page, "a power cut");
      }
      same(page.troubles, [], "what the page complained about");
      await page.close();
    }
    return { troubles: [] };
  },
};

await runAll(checks);

// Drawings as SVG files that stand on their own: every style written on its element, light colours.
import { clean, number } from "./dom.js";
import { model, step, tell } from "./store.js";

const NS = "http://www.w3.org/2000/svg";
const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "stroke-opacity",
  "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "text-decoration-line"];
const NEUTRAL = { "fill-opacity": "1", "stroke-dasharray": "none", "stroke-linecap": "butt", "stroke-linejoin": "miter", "stroke-opacity": "1",
  opacity: "1", "text-anchor": "start", "paint-order": "normal", "text-decoration-line": "none" };
const SHAPES = new Set(["path", "line", "rect", "circle", "text", "tspan", "g", "polyline", "polygon", "ellipse"]);

function make(name, attributes = {}, text = "") {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text) element.textContent = text;
  return element;
}

// The computed style of each element, as attributes. All are read before the first class goes, since
// what stands inside depends on what it stands in.
function inlined(svg) {
  const all = [svg, ...svg.querySelectorAll("*")];
  const kept = all.map((element) => (SHAPES.has(element.localName) ? styleOf(element) : []));
  all.forEach((element, i) => {
    for (const each of [...element.attributes]) {
      if (/^(class|style|tabindex|role|aria-|on)/.test(each.name)) element.removeAttribute(each.name);
    }
    for (const [name, value] of kept[i]) element.setAttribute(name, value);
  });
}

function styleOf(element) {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden") return [["display", "none"]];
  const isText = /^(text|tspan)$/.test(element.localName);
  const names = element.localName === "g" ? ["opacity"] : KEPT.filter((each) => isText || !/^(font|text|paint)/.test(each));
  return names.map((name) => [name, style.getPropertyValue(name)])
    .filter(([name, value]) => value && NEUTRAL[name] !== value && !(name === "fill" && /^url\(/.test(value)))
    .map(([name, value]) => [name, name === "font-family" ? value.replace(/"/g, "'") : value]);
}

/** Copies of drawings with their styles, in light colours; `host` gives the classes they stand in. */
function styled(svgs, hostClass) {
  const host = document.createElement("div");
  host.className = hostClass;
  host.style.cssText = "position:absolute;left:-99999px;top:0;color-scheme:light";
  host.setAttribute("aria-hidden", "true");
  const copies = svgs.map((each) => each.cloneNode(true));
  for (const each of copies) each.querySelectorAll(".pointed, .picked").forEach((mark) => mark.remove());
  host.append(...copies);
  document.body.append(host);
  for (const each of copies) inlined(each);
  host.remove();
  return copies;
}

function headline() {
  const { scenario, variant, seed } = model.tracks.head;
  return clean([scenario || "run", variant, seed === null || seed === undefined ? "" : `seed ${seed}`, `event ${number(step.value)}`].filter(Boolean).join(", "), 200);
}

/** Put drawings under a headline: parts are {svg, x, y}; the file's text. */
function assembled(parts, width, height, title, description, texts = []) {
  const root = make("svg", { xmlns: NS, width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "font-family": "system-ui, 'Liberation Sans', sans-serif" });
  root.append(make("title", {}, title), make("desc", {}, description));
  root.append(make("rect", { width, height, fill: "#ffffff" }));
  root.append(make("text", { x: 12, y: 22, "font-size": 14, "font-weight": 650, fill: "#1d1f23" }, title));
  for (const each of texts) root.append(make("text", { x: each.x, y: each.y, "font-size": each.size || 12, "font-weight": each.weight || 400, fill: each.fill || "#55585f" }, each.text));
  for (const { svg, x, y } of parts) {
    svg.setAttribute("x", x);
    svg.setAttribute("y", y);
    root.append(svg);
  }
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(root)}\n`;
}

/** A name for a file, of plain signs only. */
export function fileName(what) {
  const { scenario, variant, seed } = model.tracks.head;
  const words = [scenario || "run", variant, seed, what, step.value].filter((each) => each !== null && each !== undefined && each !== "");
  return `${words.join("-").replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[.-]+/, "").slice(0, 120)}.svg`;
}

function save(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  tell(`Saved as ${name}.`);
}

/** Save the diagram's window. */
export function saveDiagram(svg, description) {
  const [copy] = styled([svg], "space");
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  save(assembled([{ svg: copy, x: 0, y: 36 }], width, height + 48, `Space-time diagram of ${headline()}`, description), fileName("space-time"));
}

/** Save the log strips that a view shows, with their partitions' and nodes' names. */
export function saveStrips(view) {
  const parts = [];
  const texts = [];
  let y = 40;
  let width = 300;
  const say = (text, x, top, more) => texts.push({ text: clean(text, 300), x, y: top, ...more });
  for (const partition of view.querySelectorAll(".partition")) {
    const head = partition.querySelector(".partition-head");
    say(plainText(head), 12, y + 14, { weight: 600, fill: "#1d1f23" });
    y += 24;
    for (const row of partition.querySelectorAll(".log-row")) {
      const svg = row.querySelector("svg");
      if (!svg) continue;
      const [size, tall] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
      const name = row.querySelector(".node-name");
      if (name) say(name.textContent, 12, y + 32, { weight: 600, fill: "#1d1f23" });
      const badges = row.querySelector(".badges");
      if (badges) say([...badges.children].map((each) => each.textContent).join(", "), 12, y + 47, { size: 10 });
      parts.push({ svg, x: 120, y });
      width = Math.max(width, size + 132);
      y += tall + 6;
    }
    y += 12;
  }
  if (!parts.length) {
    tell("There is no log to save.");
    return;
  }
  const copies = styled(parts.map((each) => each.svg), "log-view");
  const hatch = view.querySelector("pattern#hatch");
  const described = [...view.querySelectorAll(".strip")].map((each) => each.getAttribute("aria-label")).join(" ");
  const placed = parts.map((each, i) => ({ ...each, svg: copies[i] }));
  if (hatch) placed[0].svg.prepend(hatchCopy(hatch));
  save(assembled(placed, width, y, `Logs of ${headline()}`, clean(described, 4000), texts), fileName("logs"));
}

function hatchCopy(pattern) {
  const defs = make("defs");
  const copy = pattern.cloneNode(true);
  for (const line of copy.querySelectorAll("line")) {
    line.removeAttribute("class");
    line.setAttribute("stroke", "#17191c");
    line.setAttribute("stroke-opacity", "0.55");
    line.setAttribute("stroke-width", "2.4");
  }
  defs.append(copy);
  return defs;
}

function plainText(element) {
  return element ? [...element.children].map((each) => each.textContent.replace(/\s+/g, " ").trim()).join("   ") : "";
}

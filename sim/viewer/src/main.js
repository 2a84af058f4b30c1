// The page: reads the run, shows the top bar and the views.
import { html, render } from "./dom.js";
import { Layout } from "./layout.js";
import { open } from "./store.js";
import { TopBar } from "./topbar.js";
import { Help } from "./help.js";
import { Notices } from "./notices.js";
import { listen } from "./keys.js";
import { listenToPrint } from "./printsheet.js";
// The views; each registers itself.
import "./logview.js";
import "./spacetime.js";
import "./timetracks.js";
import "./eventlist.js";
import "./storyview.js";
import "./stateview.js";
import "./whyview.js";
import "./xraypanel.js";
import "./comparepanel.js";

function Page() {
  return html`<${TopBar} /><${Notices} /><${Layout} /><${Help} />`;
}

async function begin() {
  const root = document.getElementById("app");
  try {
    await open();
  } catch (error) {
    root.replaceChildren(trouble(error));
    return;
  }
  root.replaceChildren();
  render(html`<${Page} />`, root);
  listen();
  listenToPrint();
  document.documentElement.dataset.ready = "yes";
}

function trouble(error) {
  const told = document.createElement("main");
  told.className = "loading";
  const head = document.createElement("h1");
  head.textContent = "This page cannot be opened";
  const why = document.createElement("p");
  why.textContent =
    typeof DecompressionStream === "undefined"
      ? "The browser is too old: it has no DecompressionStream."
      : `The data in it is damaged or of another version: ${error.message}. Make the page again with leaderfall report.`;
  told.append(head, why);
  return told;
}

begin();

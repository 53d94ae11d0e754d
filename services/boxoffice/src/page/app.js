// Brings the parts together and listens to the stream.

import * as audit from "./audit.js";
import { chip, showLocks, showTopology } from "./cluster.js";
import { byId } from "./dom.js";
import * as rounds from "./rounds.js";
import * as sale from "./sale.js";

let source = null;

function watch(eventId) {
  source?.close();
  source = new EventSource(eventId ? `/v1/stream?event_id=${encodeURIComponent(eventId)}` : "/v1/stream");
  const on = (name, show) => source.addEventListener(name, (event) => show(JSON.parse(event.data)));
  on("topology", showTopology);
  on("locks", showLocks);
  on("stock", sale.showStock);
  // The browser connects again by itself; all there is to do is say so.
  source.addEventListener("open", () => chip("stream", "good", "live"));
  source.addEventListener("error", () => chip("stream", "bad", "connecting again…"));
  audit.suggest(eventId);
}

function theme() {
  const root = document.documentElement;
  const saved = localStorage.getItem("theme");
  if (saved) root.dataset.theme = saved;
  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
}

theme();
audit.start();
rounds.start(async (eventId) => {
  await sale.refresh();
  audit.read(eventId);
});
sale.start(watch);

// The audit: ten promises, each with its verdict and its sentence.

import { ask } from "./api.js";
import { badge, byId, figure, make, say } from "./dom.js";

const PROMISES = {
  I1: "The stock adds up",
  I2: "Never more sold than seats",
  I3: "Charged once, and what it costs",
  I4: "One key, one purchase",
  I5: "Never more given back than taken",
  I6: "Nothing is left unfinished",
  I7: "Each hold ends once",
  I8: "Fencing tokens never fall",
  I9: "Under load: wait or no, never an error",
  I10: "No seat refused that was free",
};

/** Begins. */
export function start() {
  byId("audit-form").addEventListener("submit", (e) => {
    e.preventDefault();
    read(e.target.elements.event.value);
  });
}

/** Puts an event into the form, unless somebody is typing there. */
export function suggest(eventId) {
  const field = byId("audit-form").elements.event;
  if (document.activeElement !== field) field.value = eventId;
}

/** Reads the books of an event and shows what they say. */
export async function read(eventId) {
  byId("audit-form").elements.event.value = eventId;
  say(byId("audit-verdict"), "Reading four books…");
  const answer = await ask("GET", `/v1/audit/${encodeURIComponent(eventId)}`);
  byId("audit-table").hidden = byId("audit-figures").hidden = !answer.ok;
  if (!answer.ok) {
    say(byId("audit-verdict"), answer.words);
    return;
  }
  const report = answer.body;
  byId("audit-verdict").replaceChildren("Overall: ", badge(report.verdict));
  byId("audit-figures").replaceChildren(...figures(report));
  const rows = Object.entries(PROMISES).map(([name, words]) => row(name, words, report.invariants[name]));
  byId("audit-table").tBodies[0].replaceChildren(...rows);
  byId("audit").scrollIntoView({ block: "start" });
}

function row(name, words, invariant) {
  const verdict = invariant ? badge(invariant.verdict) : make("span", { class: "verdict plain" }, "see rounds");
  const detail = invariant?.detail ?? "Leaves no trace in books: the buyers of a round judge it.";
  return make("tr", {}, make("th", { scope: "row" }, make("b", {}, name), ` ${words}`), make("td", {}, verdict), make("td", {}, detail));
}

function figures(report) {
  const { purchases } = report;
  const alarm = (term, value) => figure(term, value, value > 0 ? { class: "alarm" } : {});
  return [
    figure("sold, of seats", `${report.sold} / ${report.capacity}`),
    alarm("oversold", report.oversold),
    alarm("undersold", report.undersold),
    figure("completed", purchases.completed),
    figure("declined", purchases.declined),
    figure("sold out", purchases.sold_out),
    figure("pending", purchases.pending),
    figure("charged", report.charged),
    alarm("charged twice", report.double_charged),
    alarm("charged, no ticket", report.charged_without_ticket),
    alarm("ticket, no charge", report.ticket_without_charge),
    figure("stale tokens refused", report.stale_tokens_rejected),
  ];
}

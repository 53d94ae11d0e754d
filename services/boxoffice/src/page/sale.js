// The sale: events, stock, buying.

import { STRATEGIES, ask, freshKey, slug } from "./api.js";
import { byId, digits, make, money, ms, say } from "./dom.js";

const ANSWERS_MAX = 40;
let key = freshKey();
let keyUsed = false;
let watched = "";
let onWatch = () => {};

/** The event that is watched. */
export const watchedEvent = () => watched;

/** Begins; `watch(id)` is called when another event is to be watched. */
export async function start(watch) {
  onWatch = watch;
  for (const select of document.querySelectorAll("select.strategies")) {
    select.append(...STRATEGIES.map(([name, words]) => make("option", { value: name, selected: name === "raft" }, words)));
  }
  say(byId("key"), key);
  byId("events").addEventListener("change", (e) => choose(e.target.value));
  byId("create").addEventListener("submit", create);
  byId("buy").addEventListener("submit", (e) => { e.preventDefault(); buy(1); });
  byId("buy-again").addEventListener("click", () => send(1));
  byId("buy-three").addEventListener("click", () => buy(3));
  byId("new-key").addEventListener("click", newKey);
  for (const field of ["buyer", "quantity", "card"]) {
    // Another wish under the same key would be refused, and rightly so.
    byId("buy").elements[field].addEventListener("change", newKey);
  }
  await refresh();
  const remembered = new URLSearchParams(location.search).get("event");
  const known = [...byId("events").options].map((option) => option.value).filter(Boolean);
  choose(remembered && known.includes(remembered) ? remembered : (known[0] ?? ""));
  if (known.length === 0) byId("create-box").open = true;
}

/** Reads the list of events again. */
export async function refresh() {
  const answer = await ask("GET", "/v1/events?limit=100");
  // What a round creates beside its own event is nothing to look at.
  const events = (answer.body?.events ?? []).filter(({ id }) => !/^(storm|probe)-/.test(id));
  const options = events.map((event) => make("option", { value: event.id }, `${event.name} · ${event.capacity} seats`));
  const none = make("option", { value: "" }, answer.ok ? "No event yet: create one" : answer.words);
  byId("events").replaceChildren(...(options.length ? options : [none]));
  if (watched) byId("events").value = watched;
  byId("audit-events").replaceChildren(...events.map((event) => make("option", { value: event.id }, event.name)));
}

function choose(id) {
  watched = id;
  byId("events").value = id;
  byId("stock").hidden = !id;
  const query = new URLSearchParams(location.search);
  if (id) query.set("event", id);
  history.replaceState(null, "", `?${query}${location.hash}`);
  onWatch(id);
}

async function create(submit) {
  submit.preventDefault();
  const form = submit.target.elements;
  const currency = form.currency.value;
  const price = Number(form.price.value.replace(",", "."));
  const answer = await ask("POST", "/v1/events", {
    body: {
      name: form.name.value,
      capacity: Number(form.capacity.value),
      price: { amount_minor: Math.round(price * 10 ** digits(currency)), currency },
      ...(form.max_per_buyer.value ? { max_per_buyer: Number(form.max_per_buyer.value) } : {}),
    },
  });
  if (!answer.ok) {
    show(answer, "create the event");
    return;
  }
  byId("create-box").open = false;
  await refresh();
  choose(answer.body.id);
  newKey();
}

function newKey() {
  key = freshKey();
  keyUsed = false;
  say(byId("key"), key);
  byId("buy-again").disabled = true;
}

// To buy is a new purchase with a key of its own; only “send again” stays with the old one.
function buy(times) {
  if (keyUsed) newKey();
  send(times);
}

async function send(times) {
  const form = byId("buy").elements;
  if (!watched) {
    show({ ok: false, status: 0, ms: 0, words: "Create an event first." }, "buy");
    return;
  }
  const order = {
    headers: { "idempotency-key": key, "lock-strategy": form.strategy.value },
    body: {
      buyer: form.buyer.value,
      items: [{ event_id: watched, quantity: Number(form.quantity.value) }],
      card: form.card.value,
    },
  };
  const label = `key ${key.slice(0, 6)}… · ${form.strategy.value}`;
  keyUsed = true;
  byId("buy-again").disabled = false;
  const sent = Array.from({ length: times }, () => ask("POST", "/v1/purchases", order).then((answer) => show(answer, label)));
  await Promise.all(sent);
}

function show(answer, label) {
  const list = byId("answers");
  list.querySelector(".empty")?.remove();
  const waiting = answer.status === 202 || answer.status === 503 || slug(answer) === "purchase-in-progress";
  const kind = answer.status === 201 ? "good" : waiting ? "unsure" : "bad";
  const name = slug(answer);
  const words = answer.status === 0 ? "no answer" : `${answer.status} ${name || (answer.status === 201 ? "sold" : "")}`;
  list.prepend(
    make("li", { class: kind },
      make("span", { class: "status" }, words),
      make("span", { class: "when" }, label),
      answer.replayed ? make("span", { class: "tag" }, "replayed") : make("span", { class: "when" }, ms(answer.ms)),
      make("span", { class: "detail" }, sentence(answer)),
    ),
  );
  while (list.children.length > ANSWERS_MAX) list.lastElementChild.remove();
}

function sentence(answer) {
  const { body, servedBy } = answer;
  if (!answer.ok) return answer.words;
  if (answer.status === 202) return "Not known yet; the suite goes on by itself. Send it again with the same key.";
  const tickets = body?.tickets?.length ?? 0;
  const wait = body?.timings ? `, ${body.timings.lock_wait_ms.toFixed(1)} ms in line for locks` : "";
  const price = body?.amount ? `, ${money(body.amount)}` : "";
  return `${tickets} ${tickets === 1 ? "ticket" : "tickets"}${price}${wait}${servedBy ? ` · answered by ${servedBy}` : ""}`;
}

/** Shows the stock of the watched event. */
export function showStock(event) {
  if (event.id !== watched) return;
  const { capacity, available, held, sold, oversold } = event;
  byId("stock").hidden = false;
  say(byId("stock-available"), String(Math.max(available, 0)));
  say(byId("stock-words"), `of ${capacity} left${event.availability === "reserved" ? " (the rest is on hold)" : ""} · ${money(event.price)}`);
  say(byId("stock-sold"), String(sold));
  say(byId("stock-held"), String(held));
  say(byId("stock-free"), String(available));
  say(byId("stock-oversold"), String(oversold));
  byId("stock-oversold").parentElement.classList.toggle("alarm", oversold > 0);
  const seats = Math.max(capacity, sold + held, 1);
  const widths = { sold: Math.min(sold, capacity), held, available: Math.max(available, 0), oversold };
  for (const [name, count] of Object.entries(widths)) {
    byId("stock-bar").querySelector(`.${name}`).style.width = `${(100 * count) / seats}%`;
  }
  byId("stock-bar").setAttribute("aria-label", `${sold} sold, ${held} on hold, ${available} available, ${oversold} oversold, of ${capacity} seats`);
}

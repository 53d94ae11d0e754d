// The race: the same burst twice, side by side, with and without the lock.

import { STRATEGIES, ask } from "./api.js";
import { badge, byId, figure, make, ms, say } from "./dom.js";

const PHASES = {
  preparing: "creating the event…",
  burst: "buyers at the door",
  storm: "the retry storm",
  resting: "waiting until every purchase has ended…",
  checking: "reading the books…",
  done: "done",
};
const POLL_MS = 500;
const lanes = [];
let busy = false;

/** Begins; `audit(eventId)` is called by a result's button. */
export async function start(audit) {
  lanes.push(lane("none", audit), lane("raft", audit));
  byId("lanes").append(...lanes.map((lane) => lane.card));
  byId("round-form").addEventListener("submit", (e) => { e.preventDefault(); run(lanes); });
  const { body } = await ask("GET", "/v1/rounds");
  for (const lane of lanes) {
    const last = body?.rounds?.find((round) => round.request.strategy === lane.select.value && round.status !== "running");
    if (last) showRound(lane, last);
  }
}

function lane(strategy, audit) {
  const options = STRATEGIES.map(([name, words]) => make("option", { value: name, selected: name === strategy }, words));
  const select = make("select", {}, ...options);
  const button = make("button", { type: "button" }, "Run this one");
  const progress = make("progress", { max: "1", value: "0", "aria-label": "Progress of the round" });
  const phase = make("p", { class: "phase", role: "status" }, "Not run yet.");
  const result = make("div", { class: "lane" });
  const head = make("header", {}, make("label", { class: "grow" }, "Strategy", select), button);
  const card = make("article", { class: "card lane", "aria-label": `Round, ${strategy}` }, head, progress, phase, result);
  const lane = { select, button, progress, phase, result, card, audit };
  button.addEventListener("click", () => run([lane]));
  select.addEventListener("change", () => card.setAttribute("aria-label", `Round, ${select.value}`));
  return lane;
}

async function run(which) {
  const form = byId("round-form");
  if (busy || !form.reportValidity()) return;
  setBusy(true);
  say(byId("round-note"), "");
  for (const lane of which) {
    lane.result.replaceChildren();
    say(lane.phase, "Next in line…");
    lane.progress.value = 0;
  }
  for (const lane of which) {
    const words = await runOne(lane, form.elements);
    if (words) {
      say(byId("round-note"), words);
      break;
    }
  }
  setBusy(false);
}

function setBusy(value) {
  busy = value;
  byId("run-both").disabled = value;
  for (const lane of lanes) lane.button.disabled = value;
}

/** Runs one round to its end; gives back why it could not be, or nothing. */
async function runOne(lane, { capacity, buyers, retry_storm, payment_key }) {
  const begun = await ask("POST", "/v1/rounds", {
    body: {
      strategy: lane.select.value,
      capacity: Number(capacity.value),
      buyers: Number(buyers.value),
      retry_storm: retry_storm.checked,
      ...(payment_key.value ? { payment_key: payment_key.value } : {}),
    },
  });
  if (begun.status !== 202) {
    say(lane.phase, begun.words);
    return begun.words;
  }
  let round = begun.body;
  while (round.status === "running") {
    showRound(lane, round);
    await new Promise((wake) => setTimeout(wake, POLL_MS));
    const answer = await ask("GET", `/v1/rounds/${round.id}`);
    if (answer.ok) round = answer.body;
    else if (answer.status === 404) return answer.words;
  }
  showRound(lane, round);
  return "";
}

function showRound(lane, { status, progress, result, detail, event_id }) {
  const { phase, answered, expected } = progress;
  const counted = phase === "burst" || phase === "storm";
  lane.progress.value = result ? 1 : counted && expected ? Math.min(answered / expected, 1) : 0;
  if (status === "running") {
    say(lane.phase, PHASES[phase] + (counted ? `: ${answered} of ${expected} answered` : ""));
    return;
  }
  if (!result) {
    say(lane.phase, status === "skipped" ? `Skipped: ${detail}` : (detail ?? status));
    return;
  }
  lane.phase.replaceChildren(badge(result.verdict), ` ${result.reason}`);
  const big = (term, value) => figure(term, value, { class: value > 0 ? "alarm" : "calm" });
  const audit = make("button", { type: "button" }, "Audit this event");
  audit.addEventListener("click", () => lane.audit(event_id));
  const outcomes = Object.entries(result.outcomes).map(([name, count]) => make("li", {}, make("b", {}, String(count)), name));
  lane.result.replaceChildren(
    make("dl", { class: "big" }, big("oversold", result.oversold), big("charged twice", result.double_charged)),
    make("dl", { class: "figures" },
      figure("sold, of seats", `${result.sold} / ${result.capacity}`),
      figure("left unsold", result.undersold),
      figure("charged, no ticket", result.charged_without_ticket),
      figure("ticket, no charge", result.ticket_without_charge),
      figure("burst took", ms(result.wall_ms)),
      figure("answers per second", Math.round(result.purchases_per_s)),
      figure("latency p50 / p99", `${ms(result.latency_ms.p50)} / ${ms(result.latency_ms.p99)}`),
      figure("lock wait p50 / p99", `${ms(result.lock_wait_ms.p50)} / ${ms(result.lock_wait_ms.p99)}`),
      figure("payment keys", result.payment_key),
    ),
    make("ul", { class: "outcomes", "aria-label": "Answers of the burst" }, ...outcomes),
    make("div", { class: "row" }, audit),
  );
}

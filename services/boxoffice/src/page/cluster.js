// The lock: three nodes, who leads, who holds, who waits.

import { byId, make, say } from "./dom.js";

const HEALTH = { up: ["good", "up"], unready: ["unsure", "not ready"], down: ["bad", "down"] };

/** Shows the topology, and the one-line summary at the top of the page. */
export function showTopology({ services, cluster }) {
  const { leader, term, nodes } = cluster;
  say(byId("cluster-words"), leader ? `node ${leader} leads in term ${term}` : "electing a leader…");
  byId("nodes").replaceChildren(...nodes.map((node, at) => nodeCard(node, at, leader)));
  byId("services").replaceChildren(...services.map(serviceLine));
  const up = services.flatMap((service) => service.instances).filter((instance) => instance.health === "up").length;
  const all = services.flatMap((service) => service.instances).length;
  chip("leader", leader ? "good" : "bad", leader ? `node ${leader} leads, term ${term}` : "no leader");
  chip("instances", up === all ? "good" : "unsure", `${up} of ${all} instances up`);
}

function nodeCard({ health, status }, at, leader) {
  const [, words] = HEALTH[health];
  const id = status?.id ?? at + 1;
  const leads = status && status.id === leader;
  const kind = !status ? "down" : leads ? "leader" : "";
  return make("li", { class: kind },
    make("strong", {}, `Node ${id}`),
    make("span", {}, !status ? words : leads ? "leader" : status.role),
    make("small", {}, status ? `term ${status.term} · applied ${status.applied_index ?? "–"}` : "no answer"),
    status ? make("small", {}, `${status.sessions} sessions · ${status.waiters} waiting`) : null,
  );
}

function serviceLine({ name, instances }) {
  const lamps = instances.map(({ health, url, detail }) => {
    const [look, words] = HEALTH[health];
    const title = `${url} ${detail ?? ""}`.trim();
    return make("span", { class: `lamp ${look}`, title }, health === "up" ? "●" : "○", make("span", { class: "sr" }, words));
  });
  return make("li", {}, name, ...lamps);
}

/** Shows locks: the holder with its token, and the line behind it. */
export function showLocks(locks) {
  const lines = locks.map(({ name, holder, waiters, waiting }) => {
    const queue = make("div", { class: "queue" });
    queue.append(
      holder
        ? make("span", { class: "person holder" }, `${holder.label || "somebody"} · token ${holder.fencing_token}`)
        : make("span", { class: "person" }, "nobody yet"),
      ...waiters.map((waiter) => make("span", { class: "person" }, waiter.label || "somebody")),
    );
    if (waiting > waiters.length) queue.append(make("span", { class: "more" }, `and ${waiting - waiters.length} more`));
    return make("li", {}, make("span", { class: "name" }, name), make("span", { class: "aside" }, ` ${waiting} waiting`), queue);
  });
  byId("locks").replaceChildren(...(lines.length ? lines : [make("li", { class: "empty" }, "No lock is held.")]));
}

/** A chip at the top of the page. */
export function chip(name, look, words) {
  let item = byId(`chip-${name}`);
  if (!item) {
    item = make("li", { id: `chip-${name}` });
    byId("chips").append(item);
  }
  item.className = look;
  say(item, words);
}

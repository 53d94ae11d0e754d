// The front door, asked. Every answer comes back the same way: {status, body, replayed, ms, words}.

/** Asks and reads. Never throws: no answer is an answer with status 0. */
export async function ask(method, path, { body, headers } = {}) {
  const began = performance.now();
  const took = () => performance.now() - began;
  try {
    const response = await fetch(path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
    const text = await response.text();
    const answer = parse(text);
    return {
      ok: response.ok,
      status: response.status,
      body: answer,
      replayed: response.headers.get("idempotent-replayed") === "true",
      servedBy: response.headers.get("served-by"),
      ms: took(),
      words: response.ok ? "" : (answer?.detail ?? answer?.title ?? response.statusText),
    };
  } catch {
    return { ok: false, status: 0, body: null, replayed: false, servedBy: null, ms: took(), words: "No answer: is the front door still running?" };
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The slug of a problem. */
export const slug = (answer) => answer.body?.type?.split("/").pop() ?? "";

/** A key nobody used before. (`crypto.randomUUID` is missing on plain http from another machine.) */
export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The strategies of this version, in the order in which they are taught. */
export const STRATEGIES = [
  ["none", "none: the race as it is"],
  ["process", "process: one mutex per process"],
  ["raft", "raft: the lock cluster, fenced"],
  ["raft-unfenced", "raft-unfenced: no fencing"],
  ["atomic", "atomic: one conditional update"],
  ["optimistic", "optimistic: compare and retry"],
];

// Small helpers for the document. Text always goes in as text: names come from strangers.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Makes an element: attributes by name (`class`, `aria-label`, …), children as nodes or text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** A term and its value, for a `dl`. */
export const figure = (term, value, attributes = {}) =>
  make("div", attributes, make("dt", {}, term), make("dd", {}, String(value)));

/** Sets an element's text, only if it differs, so that screen readers hear changes only. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** How a verdict looks; what it says is its word. */
export const look = (verdict) =>
  ({ pass: "good", fail: "bad", unknown: "unsure", "race reproduced": "bad", "race not reproduced": "plain" })[verdict] ?? "plain";

/** A verdict as a badge. */
export const badge = (verdict) => make("span", { class: `verdict ${look(verdict)}` }, verdict);

/** Milliseconds for people. */
export const ms = (value) => (value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value)} ms`);

/** Digits after the decimal point of a currency. */
export const digits = (currency) =>
  new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits;

/** An amount in minor units, for people. */
export const money = ({ amount_minor, currency }) =>
  new Intl.NumberFormat("en", { style: "currency", currency }).format(amount_minor / 10 ** digits(currency));

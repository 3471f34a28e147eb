import { el } from "../dom.ts";
import { count, percent } from "../format.ts";
import type { Session } from "../session.ts";

/** A number of samples and its share, with a bar. */
export function shareCell(part: number, all: number, kind: "own" | "total"): HTMLElement {
  const share = all > 0 ? (100 * part) / all : 0;
  const bar = el("span", { class: `bar ${kind}`, style: `width:${share.toFixed(2)}%` });
  return el("span", { class: "share", title: `${count(part)} of ${count(all)}` }, bar, el("span", {}, part > 0 ? percent(part, all) : ""));
}

/** A mark in the colour of a category. */
export function swatch(session: Session, category: number): HTMLElement {
  const { color, label } = session.categories.list[category];
  return el("span", { class: "swatch", title: label, style: `background:var(${color})` });
}

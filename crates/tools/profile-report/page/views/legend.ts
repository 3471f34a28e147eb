import { el } from "../dom.ts";
import { count, percent } from "../format.ts";
import type { Session } from "../session.ts";
import { swatch } from "./cells.ts";

/** The colours, with the share of samples whose innermost function has each. */
export function drawLegend(session: Session, element: HTMLElement) {
  const { categories, counts, profile } = session;
  const own = categories.list.map(() => 0);
  const { frame } = profile.stack;
  for (let at = 0; at < frame.length; at++) own[categories.ofFrame[frame[at]]] += counts.own[at];
  const order = [...own.keys()].filter((at) => own[at] > 0).sort((a, b) => own[b] - own[a]);
  element.replaceChildren(
    ...order.map((at) => el("span", { class: "legend", title: `${count(own[at])} samples in such functions themselves` }, swatch(session, at), `${categories.list[at].label} `, el("span", { class: "muted" }, percent(own[at], counts.all)))),
  );
}

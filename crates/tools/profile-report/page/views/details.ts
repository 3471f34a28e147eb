import { el } from "../dom.ts";
import { count, percent } from "../format.ts";
import type { Session } from "../session.ts";

/** The selected function, and where to go from it. */
export function drawDetails(session: Session, element: HTMLElement) {
  const { state, profile, counts } = session;
  element.hidden = state.fn < 0;
  if (state.fn < 0) return;
  const id = state.fn;
  const { own, total } = session.functionCounts(id);
  const action = (label: string, title: string, change: Parameters<Session["update"]>[0]) => el("button", { class: "small", title, click: () => session.update(change) }, label);
  element.replaceChildren(
    el("strong", { class: "name", title: profile.functionName(id) }, profile.functionName(id)),
    el("span", { class: "muted path", title: profile.functionPlace(id) }, profile.functionPlace(id)),
    el("span", {}, `self ${percent(own, counts.all)} (${count(own)}), total ${percent(total, counts.all)} (${count(total)})`),
    el(
      "span",
      { class: "actions" },
      action("Code", "Source and assembly (Enter)", { view: "code", code: -1 }),
      action("Generations", "All its compilations", { view: "generations" }),
      action("Callees", "What it calls (f)", { view: state.view === "tree" ? "tree" : "flame", focus: id, inverted: false }),
      action("Callers", "What calls it (c)", { view: state.view === "tree" ? "tree" : "flame", focus: id, inverted: true }),
    ),
  );
}

import type { Comparison } from "./comparison.ts";
import { INITIAL, ORDERS, type Order, type State } from "./state.ts";

/** The state as the fragment of a link: `#width=before&fn=main`. */
export function toFragment(state: State, comparison: Comparison): string {
  const words = new URLSearchParams();
  for (const key of ["width", "compared", "order"] as const) if (state[key] !== INITIAL[key]) words.set(key, state[key]);
  if (state.changes) words.set("changes", "1");
  if (state.query) words.set("q", state.query);
  if (state.fn >= 0) {
    const name = comparison.name(state.fn);
    words.set("fn", name);
    // Functions may have the same name.
    if (find(comparison, name, null) !== state.fn) words.set("fn-at", comparison.place(state.fn));
  }
  const text = words.toString();
  return text === "" ? "" : `#${text}`;
}

/** The state that a fragment describes. What it names and is not in this comparison is left out. */
export function fromFragment(fragment: string, comparison: Comparison): State {
  const words = new URLSearchParams(fragment.replace(/^#/, ""));
  const order = words.get("order") as Order;
  const name = words.get("fn");
  return {
    width: words.get("width") === "before" ? "before" : "after",
    compared: words.get("compared") === "total" ? "total" : "own",
    changes: words.get("changes") === "1",
    order: ORDERS.includes(order) ? order : INITIAL.order,
    query: words.get("q") ?? "",
    fn: name === null ? -1 : find(comparison, name, words.get("fn-at")),
  };
}

function find(comparison: Comparison, name: string, place: string | null): number {
  for (let id = 0; id < comparison.functionCount; id++) {
    if (comparison.name(id) === name && (place === null || comparison.place(id) === place)) return id;
  }
  return -1;
}

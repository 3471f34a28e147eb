import { byId, el } from "../dom.ts";

const KEYS: [string, string][] = [
  ["1 … 6", "flame graph, functions, call tree, code, generations, unnamed"],
  ["/", "search; /expression/ is a regular expression"],
  ["Arrow keys", "select a neighbour in the flame graph, the table or the tree"],
  ["Enter", "show the code of the selected function"],
  ["f, c", "show only what the selected function calls, or what calls it"],
  ["i", "callers instead of callees"],
  ["t", "tiers of the compiler apart, or merged"],
  ["w", "count samples, or the events that they stand for"],
  ["[, ]", "previous or next compilation, in the code view"],
  ["z", "zoom the timeline to the selected span, and back"],
  ["Esc", "undo the last of: search, zoom, focus, span, threads"],
  ["d", "dark, light, or as the system has it"],
  ["?", "this list"],
];

/** Shows the keys, or hides them. */
export function toggleHelp(on?: boolean) {
  const help = byId<HTMLDialogElement>("help");
  const show = on ?? !help.open;
  if (help.childElementCount === 0) {
    help.append(
      el("h2", {}, "Keys"),
      el("dl", {}, ...KEYS.flatMap(([key, what]) => [el("dt", {}, key), el("dd", {}, what)])),
      el("p", {}, "Drag over the timeline to select a span; click it to select all. Click a thread to look at it alone, with Ctrl to add others. Click a box of the flame graph to zoom into it, twice for its code. The address of the page is a link to what it shows."),
      el("button", { class: "small", click: () => help.close() }, "Close"),
    );
  }
  if (show && !help.open) help.showModal();
  if (!show && help.open) help.close();
}

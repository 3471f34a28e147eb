/** What the keys of the report do. */
export const KEYS: [string, string][] = [
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

export const HINT =
  "Drag over the timeline to select a span; click it to select all. Click a thread to look at it alone, with Ctrl to add others. Click a box of the flame graph to zoom into it, twice for its code. The address of the page is a link to what it shows.";

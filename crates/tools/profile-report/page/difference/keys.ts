/** What the keys of the page do. */
export const KEYS: [string, string][] = [
  ["/", "search; /expression/ is a regular expression"],
  ["Arrow keys", "select a neighbour in the flame graph, or in the table if that was clicked last"],
  ["w", "boxes as wide as in the first recording, or as in the second one"],
  ["s", "the table shows samples in functions themselves, or in what they call as well"],
  ["n", "leave out functions whose difference may be chance, or show them"],
  ["Esc", "undo the last of: search, zoom, selection"],
  ["d", "dark, light, or as the system has it"],
  ["?", "this list"],
];

export const HINT =
  "Click a box of the flame graph to zoom into it. Boxes of calls that are only in the first recording are shown when its widths are. Grey means that the difference may be chance. The address of the page is a link to what it shows.";

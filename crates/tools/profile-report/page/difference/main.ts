import { byId, el } from "../dom.ts";
import { count, percent } from "../format.ts";
import { listenForKeys } from "../keyboard.ts";
import { Columns } from "../read/columns.ts";
import { inflate } from "../read/inflate.ts";
import { run } from "../run.ts";
import { nextTheme } from "../theme.ts";
import { toggleHelp } from "../views/help.ts";
import { at, Comparison } from "./comparison.ts";
import { describe } from "./describe.ts";
import { Flame } from "./flame.ts";
import { Functions } from "./functions.ts";
import { HINT, KEYS } from "./keys.ts";
import { drawLegend } from "./legend.ts";
import { Session } from "./session.ts";
import type { State } from "./state.ts";

async function start() {
  const comparison = new Comparison(new Columns(await inflate("difference-data")));
  const session = new Session(comparison);
  const flame = new Flame(session, byId("flame"), byId("flame-canvas"), byId("flame-space"));
  const functions = new Functions(session, byId("functions"));
  const { recordings, samples, runs } = comparison.about;

  const query = byId<HTMLInputElement>("query");
  query.addEventListener("input", () => session.update({ query: query.value }));
  const buttons: [string, Partial<State>][] = [
    ["width-before", { width: "before" }],
    ["width-after", { width: "after" }],
    ["compared-own", { compared: "own" }],
    ["compared-total", { compared: "total" }],
  ];
  for (const [id, change] of buttons) byId(id).addEventListener("click", () => session.update(change));
  const toggleChanges = () => session.update({ changes: !session.state.changes });
  byId("changes").addEventListener("click", toggleChanges);
  byId("theme").addEventListener("click", retheme);
  byId("help-button").addEventListener("click", () => toggleHelp(KEYS, HINT));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => flame.draw());

  function retheme() {
    nextTheme();
    flame.draw();
  }

  function drawHead() {
    const names = recordings.map((name) => name || "[no name]");
    document.title = `${names.join(" → ")}: jitscribe diff`;
    byId("about").textContent = names.join(" → ");
    byId("about").title = names.join("\n");
    const activities = comparison.about.activities.map(([name, [before, after]]) => `${percent(before, samples[0])} → ${percent(after, samples[1])} ${name}`);
    byId("activities").textContent = activities.join(" · ");
    byId("activities").hidden = activities.length === 0;
    drawLegend(comparison, byId("legend"));
    byId("nothing").hidden = comparison.functionCount > 0;
    byId("nothing").textContent = "The recordings have no samples.";
  }

  function drawBar() {
    const { state, matches } = session;
    const side = (name: string, at: 0 | 1) => `${name}: ${count(samples[at])} samples${runs[at] > 1 ? ` in ${count(runs[at])} recordings` : ""}`;
    const words = [side("before", 0), side("after", 1)];
    if (matches) words.push(session.matchingSamples().map((part, side) => percent(part, samples[side])).join(" → ") + " matches");
    byId("selection").textContent = words.join(" · ");
    byId("shown").textContent = functions.count === 1 ? "1 function" : `${count(functions.count)} functions`;
    for (const [id, change] of buttons) {
      const isPressed = Object.entries(change).every(([key, value]) => state[key as keyof State] === value);
      byId(id).setAttribute("aria-pressed", String(isPressed));
    }
    byId("changes").setAttribute("aria-pressed", String(state.changes));
    if (query.value !== state.query) query.value = state.query;
    drawDetails();
  }

  /** The selected function, and its difference. */
  function drawDetails() {
    const { fn } = session.state;
    const details = byId("details");
    details.hidden = fn < 0;
    if (fn < 0) return;
    const words = (["own", "total"] as const).map((compared) => {
      const [before, after, change] = describe(comparison, at(comparison[compared], fn));
      return el("span", { title: [before, after, change].join("\n") }, `${compared === "own" ? "self" : "total"} ${change}`);
    });
    const place = comparison.place(fn);
    details.replaceChildren(el("strong", { class: "name", title: comparison.name(fn) }, comparison.name(fn)), el("span", { class: "muted path", title: place }, place), ...words);
  }

  function draw(changed: ReadonlySet<keyof State>) {
    functions.changed(changed);
    drawBar();
    flame.changed(changed);
  }
  session.listen(draw);

  function undo() {
    if (session.state.query) session.update({ query: "" });
    else if (!flame.reset()) session.update({ fn: -1 });
  }

  const keys: Record<string, () => unknown> = {
    "/": () => (query.focus(), query.select()),
    "?": () => toggleHelp(KEYS, HINT),
    Escape: undo,
    w: () => session.update({ width: session.state.width === "after" ? "before" : "after" }),
    s: () => session.update({ compared: session.state.compared === "own" ? "total" : "own" }),
    n: toggleChanges,
    d: retheme,
    ArrowUp: () => functions.move(-1) || flame.move("up"),
    ArrowDown: () => functions.move(1) || flame.move("down"),
    ArrowLeft: () => flame.move("left"),
    ArrowRight: () => flame.move("right"),
  };
  listenForKeys(keys, query, () => session.update({ query: "" }));

  drawHead();
  draw(new Set(Object.keys(session.state) as (keyof State)[]));
  return { session, flame };
}

run(start);

import { byId, el } from "./dom.ts";
import { count, duration, percent } from "./format.ts";
import { listenForKeys } from "./keyboard.ts";
import { Code } from "./model/code.ts";
import { codesWithFunction } from "./model/codes_with_function.ts";
import { Profile } from "./model/profile.ts";
import { Columns } from "./read/columns.ts";
import { inflate } from "./read/inflate.ts";
import { run } from "./run.ts";
import { Session } from "./session.ts";
import { VIEWS, type View } from "./state.ts";
import { nextTheme } from "./theme.ts";
import { CallTreeTable } from "./views/call_tree.ts";
import { CodeView } from "./views/code.ts";
import { drawDetails } from "./views/details.ts";
import { Flame } from "./views/flame.ts";
import { Functions } from "./views/functions.ts";
import { Generations } from "./views/generations.ts";
import { toggleHelp } from "./views/help.ts";
import { HINT, KEYS } from "./views/keys.ts";
import { drawLegend } from "./views/legend.ts";
import { Timeline } from "./views/timeline.ts";
import { Unnamed } from "./views/unnamed.ts";

const NAMES: Record<View, string> = {
  flame: "Flame graph",
  functions: "Functions",
  tree: "Call tree",
  code: "Code",
  generations: "Generations",
  unnamed: "Unnamed",
};

async function start() {
  const profile = new Profile(new Columns(await inflate("profile-data")));
  const session = new Session(profile);
  let reading: Promise<Code> | null = null;
  const code = () => (reading ??= Code.read());

  const timeline = new Timeline(session, byId("timeline"), byId("lanes"), byId("timeline-canvas"));
  const flame = new Flame(session, byId("flame"), byId("flame-canvas"), byId("flame-space"));
  const functions = new Functions(session, byId("functions"));
  const tree = new CallTreeTable(session, byId("tree"));
  const codeView = new CodeView(session, byId("code"), code);
  const generations = new Generations(session, byId("generations"), code);
  const unnamed = new Unnamed(session, byId("unnamed"), code);

  const tabs = VIEWS.map((view, at) => el("button", { role: "tab", title: `Key ${at + 1}`, "data-view": view, click: () => session.update({ view }) }, NAMES[view]));
  byId("tabs").append(...tabs);
  const query = byId<HTMLInputElement>("query");
  query.addEventListener("input", () => session.update({ query: query.value }));
  const toggles = (["inverted", "apart", "weighted"] as const).map((flag) => {
    const button = byId(flag);
    button.addEventListener("click", () => session.update({ [flag]: !session.state[flag] }));
    return { flag, button };
  });
  const events = byId<HTMLSelectElement>("event");
  if (profile.event.name.length > 1) {
    events.append(...["all events", ...Array.from(profile.event.name, (name) => profile.strings[name])].map((name, at) => el("option", { value: at - 1 }, name)));
    events.addEventListener("change", () => session.update({ event: Number(events.value) }));
    events.hidden = false;
  }
  byId("theme").addEventListener("click", () => retheme());
  byId("help-button").addEventListener("click", () => toggleHelp(KEYS, HINT));
  byId("whole").addEventListener("click", () => session.update({ span: null, threads: null, focus: -1 }));

  function retheme() {
    nextTheme();
    timeline.redraw();
    flame.draw();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (timeline.redraw(), flame.draw()));

  function drawHead() {
    const { about } = profile;
    document.title = about.recording ? `${about.recording}: jitscribe report` : "jitscribe report";
    const when = about.startUtc === null ? "" : new Date(about.startUtc / 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
    const words = [about.command.join(" "), about.recording, about.host, about.machine, when, about.frequency ? `${count(about.frequency)} Hz` : ""];
    byId("about").textContent = words.filter(Boolean).join(" · ");
    byId("about").title = words.filter(Boolean).join("\n");
  }

  /** What was done in all samples, or in those of the event that is looked at. */
  function drawActivities() {
    const parts = profile.about.activities[session.state.event + 1] ?? [];
    const all = parts.reduce((sum, [, samples]) => sum + samples, 0);
    byId("activities").textContent = parts.map(([name, samples]) => `${percent(samples, all)} ${name}`).join(" · ");
    byId("activities").hidden = parts.length === 0;
  }

  function drawBar() {
    const { state, counts, search, grouping } = session;
    drawActivities();
    tabs.forEach((tab, at) => tab.setAttribute("aria-selected", String(VIEWS[at] === state.view)));
    for (const { flag, button } of toggles) button.setAttribute("aria-pressed", String(state[flag]));
    if (query.value !== state.query) query.value = state.query;
    events.value = String(state.event);
    const words = [`${count(counts.samples)} of ${count(profile.sampleCount)} samples`];
    if (state.span) words.push(`${duration(state.span[0])} to ${duration(state.span[1])}`);
    if (state.threads) words.push(`${count(state.threads.size)} ${profile.about.ofFleet ? "host" : "thread"}${state.threads.size === 1 ? "" : "s"}`);
    if (state.focus >= 0) words.push(`${state.inverted ? "callers of" : "from"} ${profile.distinctName(state.focus)}`);
    if (!search.isEmpty) words.push(`${percent(search.share(counts, grouping), counts.all)} matches`);
    byId("selection").textContent = words.join(" · ");
    byId("whole").hidden = !state.span && !state.threads && state.focus < 0;
    for (const view of VIEWS) byId(`view-${view}`).hidden = view !== state.view;
    byId("nothing").hidden = counts.samples > 0;
    byId("nothing").textContent = profile.sampleCount === 0 ? "The recording has no samples." : "No samples are selected.";
    drawLegend(session, byId("legend"));
    drawDetails(session, byId("details"));
  }

  const everything = new Set(Object.keys(session.state) as (keyof typeof session.state)[]);
  function drawView(changed: ReadonlySet<string>) {
    const { view } = session.state;
    if (view === "flame") flame.changed(changed as typeof everything);
    else if (view === "functions") functions.draw();
    else if (view === "tree") tree.changed(changed as typeof everything);
    else if (view === "code") void codeView.draw();
    else if (view === "generations") void generations.draw();
    else void unnamed.draw();
  }
  session.listen((changed) => {
    timeline.changed(changed);
    drawBar();
    drawView(changed);
  });

  function moveCode(by: number) {
    const { state } = session;
    if (state.fn < 0) return;
    const codes = codesWithFunction(profile, state.fn);
    const next = codes[(Math.max(0, codes.indexOf(state.code)) + by + codes.length) % codes.length];
    if (next !== undefined) session.update({ code: next, view: "code" });
  }

  function undo() {
    const { state } = session;
    if (state.query) session.update({ query: "" });
    else if (state.view === "flame" && flame.reset()) return;
    else if (state.focus >= 0) session.update({ focus: -1, inverted: false });
    else if (state.span) session.update({ span: null });
    else if (state.threads) session.update({ threads: null });
    else session.update({ fn: -1 });
  }

  function move(key: "up" | "down" | "left" | "right") {
    const { view } = session.state;
    if (view === "flame") flame.move(key);
    else if (view === "tree") tree.move(key);
    else if (view === "functions" && key === "up") functions.move(-1);
    else if (view === "functions" && key === "down") functions.move(1);
    else return false;
    return true;
  }

  const keys: Record<string, () => unknown> = {
    "/": () => (query.focus(), query.select()),
    "?": () => toggleHelp(KEYS, HINT),
    Escape: undo,
    Enter: () => session.state.fn >= 0 && session.update({ view: "code", code: -1 }),
    f: () => session.state.fn >= 0 && session.update({ focus: session.state.fn, inverted: false }),
    c: () => session.state.fn >= 0 && session.update({ focus: session.state.fn, inverted: true }),
    i: () => session.update({ inverted: !session.state.inverted }),
    t: () => session.update({ apart: !session.state.apart }),
    w: () => session.update({ weighted: !session.state.weighted }),
    z: () => timeline.zoom(),
    d: retheme,
    "[": () => moveCode(-1),
    "]": () => moveCode(1),
    ArrowUp: () => move("up"),
    ArrowDown: () => move("down"),
    ArrowLeft: () => move("left"),
    ArrowRight: () => move("right"),
  };
  VIEWS.forEach((view, at) => (keys[String(at + 1)] = () => session.update({ view })));
  listenForKeys(keys, query, () => session.update({ query: "" }));

  drawHead();
  drawBar();
  // What is behind the view in front is drawn when it is shown.
  drawView(everything);
  timeline.redraw();
  return { session, timeline, flame };
}

run(start);

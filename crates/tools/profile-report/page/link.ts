import type { Profile } from "./model/profile.ts";
import { INITIAL, VIEWS, type State, type View } from "./state.ts";

/** The state as the fragment of a link: `#fn=main&t=0.5-1.25`. Times are seconds since the first sample. */
export function toFragment(state: State, profile: Profile): string {
  const words = new URLSearchParams();
  if (state.view !== INITIAL.view) words.set("view", state.view);
  if (state.fn >= 0) setFunction(words, "fn", state.fn, profile);
  if (state.focus >= 0) setFunction(words, "focus", state.focus, profile);
  if (state.code >= 0) words.set("code", String(state.code));
  if (state.span) words.set("t", state.span.map((time) => String(Math.round(time) / 1e9)).join("-"));
  if (state.threads) words.set("threads", [...state.threads].map((id) => profile.thread.tid[id]).join(","));
  if (state.event >= 0 && profile.event.name.length > 1) words.set("event", String(state.event));
  if (state.query) words.set("q", state.query);
  for (const flag of ["weighted", "apart", "inverted"] as const) if (state[flag]) words.set(flag, "1");
  const text = words.toString();
  return text === "" ? "" : `#${text}`;
}

/** The state that a fragment describes. What it names and is not in this profile is left out. */
export function fromFragment(fragment: string, profile: Profile, initial: State): State {
  const words = new URLSearchParams(fragment.replace(/^#/, ""));
  const state: State = { ...initial };
  const view = words.get("view");
  if (VIEWS.includes(view as View)) state.view = view as View;
  state.fn = findFunction(words, "fn", profile);
  state.focus = findFunction(words, "focus", profile);
  if (state.fn >= 0 && view === null) state.view = "code";
  const code = Number(words.get("code") ?? -1);
  if (code >= 0 && code < profile.code.function.length && profile.code.function[code] === state.fn) state.code = code;
  const span = /^([\d.]+)-([\d.]+)$/.exec(words.get("t") ?? "");
  if (span && Number(span[1]) < Number(span[2])) state.span = [Number(span[1]) * 1e9, Number(span[2]) * 1e9];
  const tids = words.get("threads");
  if (tids !== null) {
    const numbers = new Set(tids.split(",").map(Number));
    const threads = new Set<number>();
    profile.thread.tid.forEach((tid, id) => numbers.has(tid) && threads.add(id));
    if (threads.size > 0) state.threads = threads;
  }
  const event = Number(words.get("event") ?? -1);
  if (event >= 0 && event < profile.event.name.length) state.event = event;
  state.query = words.get("q") ?? "";
  for (const flag of ["weighted", "apart", "inverted"] as const) state[flag] = words.get(flag) === "1";
  return state;
}

function setFunction(words: URLSearchParams, key: string, id: number, profile: Profile) {
  words.set(key, profile.functionName(id));
  // Functions may have the same name.
  const place = profile.functionPlace(id);
  if (place && firstNamed(profile, profile.functionName(id)) !== id) words.set(`${key}-at`, place);
}

function findFunction(words: URLSearchParams, key: string, profile: Profile): number {
  const name = words.get(key);
  if (name === null) return -1;
  const place = words.get(`${key}-at`);
  if (place === null) return firstNamed(profile, name);
  for (let id = 0; id < profile.function.name.length; id++) {
    if (profile.functionName(id) === name && profile.functionPlace(id) === place) return id;
  }
  return -1;
}

function firstNamed(profile: Profile, name: string): number {
  for (let id = 0; id < profile.function.name.length; id++) if (profile.functionName(id) === name) return id;
  return -1;
}

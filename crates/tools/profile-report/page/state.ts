/** What is looked at, and how: all that a link to the report has. */
export interface State {
  view: View;
  /** Times in nanoseconds since the first sample: from the first on, before the second. */
  span: readonly [number, number] | null;
  threads: ReadonlySet<number> | null;
  /** −1: all. */
  event: number;
  /** Count the events that samples stand for. */
  weighted: boolean;
  /** Show what different tiers made of a function as different functions. */
  apart: boolean;
  /** Show callers instead of callees. */
  inverted: boolean;
  query: string;
  /** The selected function, or −1. */
  fn: number;
  /** The trees start at this function; −1: they don't. */
  focus: number;
  /** The compilation that is looked at; −1: the one with the most samples. */
  code: number;
}

export const VIEWS = ["flame", "functions", "tree", "code", "generations", "unnamed"] as const;
export type View = (typeof VIEWS)[number];

export const INITIAL: State = {
  view: "flame",
  span: null,
  threads: null,
  event: -1,
  weighted: false,
  apart: false,
  inverted: false,
  query: "",
  fn: -1,
  focus: -1,
  code: -1,
};

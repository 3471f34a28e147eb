import { matcher } from "../model/matcher.ts";
import { Store } from "../store.ts";
import type { Comparison } from "./comparison.ts";
import { fromFragment, toFragment } from "./link.ts";
import type { State } from "./state.ts";
import { Tree } from "./tree.ts";

export type Changed = ReadonlySet<keyof State>;

/** The comparison, what is looked at, and what follows from both. */
export class Session extends Store<State> {
  tree!: Tree;
  /** Which functions match the search; null: nothing is searched for. */
  matches!: Uint8Array | null;

  constructor(readonly comparison: Comparison) {
    super(fromFragment(location.hash, comparison));
    this.derive(new Set(Object.keys(this.state) as (keyof State)[]));
  }

  protected override read(fragment: string): State {
    return fromFragment(fragment, this.comparison);
  }

  protected override write(): string {
    return toFragment(this.state, this.comparison);
  }

  protected override derive(changed: Changed) {
    if (changed.has("width")) this.tree = new Tree(this.comparison, this.state.width);
    if (changed.has("query")) this.matches = this.state.query === "" ? null : this.find(this.state.query);
  }

  /** How many samples of each recording have a function that matches on the stack. */
  matchingSamples(): [number, number] {
    const { function: functions, parent, total } = this.comparison.node;
    const above = new Uint8Array(functions.length);
    const sums: [number, number] = [0, 0];
    for (let row = 0; row < functions.length; row++) {
      if (parent[row] >= 0 && above[parent[row]] === 1) above[row] = 1;
      else if (this.matches?.[functions[row]] === 1) {
        above[row] = 1;
        sums[0] += total.before[row];
        sums[1] += total.after[row];
      }
    }
    return sums;
  }

  private find(query: string): Uint8Array {
    const test = matcher(query);
    const matches = new Uint8Array(this.comparison.functionCount);
    for (let id = 0; id < matches.length; id++) {
      if (test(this.comparison.name(id)) || test(this.comparison.file(id))) matches[id] = 1;
    }
    return matches;
  }
}

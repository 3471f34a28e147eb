import { fromFragment, toFragment } from "./link.ts";
import { Categories } from "./model/categories.ts";
import { ItemCounts, StackCounts } from "./model/counts.ts";
import { Grouping } from "./model/grouping.ts";
import type { Profile } from "./model/profile.ts";
import { Search } from "./model/search.ts";
import { CallTree } from "./model/tree.ts";
import { INITIAL, type State } from "./state.ts";
import { Store } from "./store.ts";

export type Changed = ReadonlySet<keyof State>;

/** The profile, what is looked at, and what follows from both. */
export class Session extends Store<State> {
  readonly categories: Categories;
  private readonly merged: Grouping;
  private apart: Grouping | null = null;
  counts!: StackCounts;
  search!: Search;
  // Of these, a view needs one at most.
  private knownItems: ItemCounts | null = null;
  private knownTree: CallTree | null = null;

  constructor(readonly profile: Profile) {
    super(fromFragment(location.hash, profile, initial(profile)));
    this.categories = new Categories(profile);
    this.merged = new Grouping(profile, this.categories, false);
    this.derive(new Set(Object.keys(this.state) as (keyof State)[]));
  }

  get grouping(): Grouping {
    if (!this.state.apart) return this.merged;
    return (this.apart ??= new Grouping(this.profile, this.categories, true));
  }

  /** The samples by function. */
  get items(): ItemCounts {
    return (this.knownItems ??= new ItemCounts(this.profile, this.counts, this.grouping));
  }

  /** The call tree, or the tree of callers. */
  get tree(): CallTree {
    const { focus, inverted } = this.state;
    const start = () => (focus < 0 ? null : this.outermostStacks(focus));
    return (this.knownTree ??= new CallTree(this.profile, this.counts, this.grouping, inverted, start()));
  }

  /** How much a function counts, whatever its tiers. */
  functionCounts(id: number): { own: number; total: number } {
    const counts = { own: 0, total: 0 };
    const { frame } = this.profile.stack;
    for (let at = 0; at < frame.length; at++) {
      if (this.profile.frame.function[frame[at]] !== id) continue;
      counts.own += this.counts.own[at];
      if (this.merged.topmost[at] === 1) counts.total += this.counts.total[at];
    }
    return counts;
  }

  protected override read(fragment: string): State {
    return fromFragment(fragment, this.profile, initial(this.profile));
  }

  protected override write(): string {
    return toFragment(this.state, this.profile);
  }

  protected override derive(changed: Changed) {
    const has = (...keys: (keyof State)[]) => keys.some((key) => changed.has(key));
    const { profile, state } = this;
    const counts = has("span", "threads", "event", "weighted");
    if (counts) this.counts = new StackCounts(profile, state);
    if (counts || has("apart")) this.knownItems = null;
    if (counts || has("apart", "inverted", "focus")) this.knownTree = null;
    if (has("query")) this.search = new Search(profile, state.query);
  }

  private outermostStacks(id: number): number[] {
    const stacks = [];
    const { frame } = this.profile.stack;
    for (let at = 0; at < frame.length; at++) {
      const isOutermost = this.merged.topmost[at] === 1 && this.profile.frame.function[frame[at]] === id;
      if (isOutermost && this.counts.total[at] > 0) stacks.push(at);
    }
    return stacks;
  }
}

/** With several events, samples of different ones don't add up: the first one is looked at. */
function initial(profile: Profile): State {
  return { ...INITIAL, event: profile.event.name.length > 1 ? 0 : -1 };
}

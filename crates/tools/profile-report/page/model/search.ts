import type { StackCounts } from "./counts.ts";
import type { Grouping } from "./grouping.ts";
import { matcher } from "./matcher.ts";
import type { Profile } from "./profile.ts";

/** The functions whose name or path matches what is searched for. */
export class Search {
  private readonly matches: Uint8Array;

  constructor(
    private readonly profile: Profile,
    readonly query: string,
  ) {
    const test = matcher(query);
    const { name, file } = profile.function;
    const byString = new Map<number, boolean>();
    const matchesString = (id: number) => {
      let known = byString.get(id);
      if (known === undefined) byString.set(id, (known = test(profile.strings[id])));
      return known;
    };
    this.matches = new Uint8Array(name.length);
    if (query === "") return;
    for (let id = 0; id < name.length; id++) {
      if (matchesString(name[id]) || matchesString(file[id])) this.matches[id] = 1;
    }
  }

  get isEmpty(): boolean {
    return this.query === "";
  }

  has(functionId: number): boolean {
    return this.matches[functionId] === 1;
  }

  /** How much has a function that matches on the stack. */
  share(counts: StackCounts, grouping: Grouping): number {
    const { parent, frame } = this.profile.stack;
    const above = new Uint8Array(frame.length);
    let sum = 0;
    for (let at = 0; at < frame.length; at++) {
      if (parent[at] >= 0 && above[parent[at]] === 1) above[at] = 1;
      else if (this.has(grouping.functionOf[grouping.ofFrame[frame[at]]])) {
        above[at] = 1;
        sum += counts.total[at];
      }
    }
    return sum;
  }
}

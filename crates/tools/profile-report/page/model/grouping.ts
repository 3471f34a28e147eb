import type { Categories } from "./categories.ts";
import type { Profile } from "./profile.ts";
import { topmost } from "./topmost.ts";

/** What is counted as one: a function or, with tiers apart, what one tier made of it. */
export class Grouping {
  readonly ofFrame: Int32Array;
  readonly functionOf: number[] = [];
  /** The category with the most samples. */
  readonly categoryOf: number[] = [];
  readonly topmost: Uint8Array;

  constructor(
    readonly profile: Profile,
    readonly categories: Categories,
    readonly apart: boolean,
  ) {
    const { function: functions } = profile.frame;
    this.ofFrame = new Int32Array(functions.length);
    const numbers = new Map<number, number>();
    const byCategory: Map<number, number>[] = [];
    const weights = wholeCounts(profile);
    for (let frame = 0; frame < functions.length; frame++) {
      const category = categories.ofFrame[frame];
      const key = functions[frame] * categories.list.length + (apart ? category : 0);
      let item = numbers.get(key);
      if (item === undefined) {
        item = this.functionOf.length;
        numbers.set(key, item);
        this.functionOf.push(functions[frame]);
        byCategory.push(new Map());
      }
      this.ofFrame[frame] = item;
      byCategory[item].set(category, (byCategory[item].get(category) ?? 0) + weights[frame]);
    }
    for (const counts of byCategory) {
      let best = -1;
      let most = -1;
      for (const [category, count] of counts) if (count > most) [best, most] = [category, count];
      this.categoryOf.push(best);
    }
    this.topmost = topmost(profile, this.ofFrame, this.functionOf.length);
  }

  get count(): number {
    return this.functionOf.length;
  }

  name(item: number): string {
    return this.profile.functionName(this.functionOf[item]);
  }
}

/** For each frame the number of samples with it on the stack; a recursive one counts more than once. */
function wholeCounts(profile: Profile): Float64Array {
  const { parent, frame } = profile.stack;
  const total = new Float64Array(frame.length);
  for (let row = 0; row < profile.sampleCount; row++) total[profile.sample.stack[row]]++;
  const frames = new Float64Array(profile.frame.function.length);
  for (let at = frame.length - 1; at >= 0; at--) {
    frames[frame[at]] += total[at];
    if (parent[at] >= 0) total[parent[at]] += total[at];
  }
  return frames;
}

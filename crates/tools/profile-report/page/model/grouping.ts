import type { Categories } from "./categories.ts";
import type { Profile } from "./profile.ts";
import { topmost } from "./topmost.ts";

/** What is counted as one: a function or, with tiers apart, what one tier made of it. */
export class Grouping {
  readonly ofFrame: Int32Array;
  readonly functionOf: number[] = [];
  /** The category with the most own samples and, of those with equally many, with the most samples. */
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
    const byCategory: Map<number, { own: number; total: number }>[] = [];
    const { own, total } = wholeCounts(profile);
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
      let counts = byCategory[item].get(category);
      if (counts === undefined) byCategory[item].set(category, (counts = { own: 0, total: 0 }));
      counts.own += own[frame];
      counts.total += total[frame];
    }
    for (const categories of byCategory) {
      const sorted = [...categories].sort(([, a], [, b]) => b.own - a.own || b.total - a.total);
      this.categoryOf.push(sorted[0][0]);
    }
    this.topmost = topmost(profile, this.ofFrame, this.functionOf.length);
  }

  get count(): number {
    return this.functionOf.length;
  }

  name(item: number): string {
    return this.profile.functionName(this.functionOf[item]);
  }

  /** The name for views that show names alone. */
  distinctName(item: number): string {
    return this.profile.distinctName(this.functionOf[item]);
  }
}

/** For each frame the number of samples in it, and with it on the stack; a recursive one counts more than once. */
function wholeCounts(profile: Profile): { own: Float64Array; total: Float64Array } {
  const { parent, frame } = profile.stack;
  const samples = new Float64Array(frame.length);
  const own = new Float64Array(profile.frame.function.length);
  for (let row = 0; row < profile.sampleCount; row++) {
    const stack = profile.sample.stack[row];
    samples[stack]++;
    own[frame[stack]]++;
  }
  const total = new Float64Array(own.length);
  for (let at = frame.length - 1; at >= 0; at--) {
    total[frame[at]] += samples[at];
    if (parent[at] >= 0) samples[parent[at]] += samples[at];
  }
  return { own, total };
}

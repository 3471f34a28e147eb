import type { Grouping } from "./grouping.ts";
import type { Profile } from "./profile.ts";

/** Which samples are counted, and how. */
export interface Selection {
  /** From this time on, and before that; null: all. */
  span: readonly [number, number] | null;
  threads: ReadonlySet<number> | null;
  /** −1: all. */
  event: number;
  /** By the events that a sample stands for, instead of by samples. */
  weighted: boolean;
}

/** The first sample at or after a time. */
export function firstSample(profile: Profile, time: number): number {
  const times = profile.sample.time;
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The samples of a selection by stack. */
export class StackCounts {
  /** Of samples that end at this stack. */
  readonly own: Float64Array;
  /** Of these and of all stacks above it. */
  readonly total: Float64Array;
  all = 0;
  samples = 0;

  constructor(profile: Profile, selection: Selection) {
    const { thread, event, weight, stack } = profile.sample;
    const [from, until] = selection.span
      ? selection.span.map((time) => firstSample(profile, time))
      : [0, profile.sampleCount];
    const chosen = new Uint8Array(profile.thread.tid.length).fill(selection.threads ? 0 : 1);
    for (const id of selection.threads ?? []) chosen[id] = 1;
    const { event: only, weighted } = selection;
    const own = new Float64Array(profile.stackCount);
    for (let row = from; row < until; row++) {
      if (chosen[thread[row]] === 0 || (only >= 0 && event[row] !== only)) continue;
      own[stack[row]] += weighted ? weight[row] : 1;
      this.samples++;
    }
    const total = own.slice();
    const { parent } = profile.stack;
    for (let at = total.length - 1; at >= 0; at--) {
      if (parent[at] >= 0) total[parent[at]] += total[at];
      else this.all += total[at];
    }
    this.own = own;
    this.total = total;
  }
}

/** The same by function, or by function and tier. */
export class ItemCounts {
  readonly own: Float64Array;
  readonly total: Float64Array;

  constructor(profile: Profile, stacks: StackCounts, grouping: Grouping) {
    const { frame } = profile.stack;
    const own = new Float64Array(grouping.count);
    const total = new Float64Array(grouping.count);
    for (let at = 0; at < frame.length; at++) {
      if (stacks.total[at] === 0) continue;
      const item = grouping.ofFrame[frame[at]];
      own[item] += stacks.own[at];
      if (grouping.topmost[at] === 1) total[item] += stacks.total[at];
    }
    this.own = own;
    this.total = total;
  }
}

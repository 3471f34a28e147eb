import type { Instruction } from "./code.ts";

/** Branches to one target within a code: a line along the rows from the first to the last of them. */
export interface Branch {
  /** The row of the target. */
  target: number;
  /** The rows of the branches. */
  sources: number[];
  top: number;
  bottom: number;
  /** How far the line is from the instructions, from 0. */
  lane: number;
}

const MOST_LANES = 8;

/** Calls and addresses of data refer to other places too, and are no branches. */
const MNEMONIC = /^(j\w+|loop\w*|b|b\.\w+|cbn?z|tbn?z)$/;

export function isBranch({ text, target }: Instruction): boolean {
  return target >= 0 && MNEMONIC.test(text.split(" ", 1)[0]);
}

/** The lines of branches, such that those of one lane don't touch. */
export class Branches {
  /** Number of targets for which no lane was left. */
  leftOut = 0;
  /** By lane, from the top. */
  private readonly lanes: Branch[][] = [];

  /** `jumps`: pairs of rows, of a branch and its target. */
  constructor(jumps: readonly (readonly [number, number])[]) {
    const byTarget = new Map<number, Branch>();
    for (const [from, target] of jumps) {
      const branch = byTarget.get(target) ?? { target, sources: [], top: target, bottom: target, lane: 0 };
      branch.sources.push(from);
      branch.top = Math.min(branch.top, from);
      branch.bottom = Math.max(branch.bottom, from);
      byTarget.set(target, branch);
    }
    // The shortest are the closest to the instructions.
    const length = ({ top, bottom }: Branch) => bottom - top;
    for (const branch of [...byTarget.values()].sort((a, b) => length(a) - length(b) || a.top - b.top)) this.add(branch);
  }

  /** Number of lanes. */
  get width(): number {
    return this.lanes.length;
  }

  /** The lines that pass a row. */
  at(row: number): Branch[] {
    return this.lanes.flatMap((lane) => {
      const branch = lane[firstBelow(lane, row) - 1];
      return branch && branch.bottom >= row ? [branch] : [];
    });
  }

  private add(branch: Branch) {
    for (branch.lane = 0; branch.lane < MOST_LANES; branch.lane++) {
      const lane = (this.lanes[branch.lane] ??= []);
      const place = firstBelow(lane, branch.bottom);
      if (place > 0 && lane[place - 1].bottom >= branch.top) continue;
      lane.splice(place, 0, branch);
      return;
    }
    this.leftOut++;
  }
}

/** The place of the first branch that begins below a row. */
function firstBelow(lane: readonly Branch[], row: number): number {
  let [low, high] = [0, lane.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle].top <= row) low = middle + 1;
    else high = middle;
  }
  return low;
}

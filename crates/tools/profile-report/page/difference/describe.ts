import { count, percent, probability, signed } from "../format.ts";
import type { Comparison, Counts } from "./comparison.ts";

/** A difference in words: both numbers, their shares, the change, and whether it may be chance. */
export function describe(comparison: Comparison, counts: Counts): string[] {
  const [allBefore, allAfter] = comparison.about.samples;
  const { before, after, byChance } = counts;
  return [
    `before: ${count(before)} samples (${percent(before, allBefore)})`,
    `after: ${count(after)} samples (${percent(after, allAfter)})`,
    `change: ${signed(comparison.change(counts))} ${unit(comparison)}, ${byChance >= comparison.about.significant ? "may be chance" : "more than chance"} (probability ${probability(byChance)})`,
  ];
}

/** The unit of changes. */
export function unit(comparison: Comparison): string {
  return comparison.about.ratio === null ? "percentage points" : "% of the first recording's time";
}

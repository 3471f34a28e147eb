import { relatives } from "../model/relatives.ts";
import { distinctName, placeText, sharedLines } from "../model/shared_lines.ts";
import type { Columns } from "../read/columns.ts";

/** What the directory of the data says. The first of each pair is of the first recording. */
interface About {
  recordings: [string, string];
  samples: [number, number];
  /** Numbers of recordings: each is several runs of a program. */
  runs: [number, number];
  /** Samples of the second recording for the same time, divided by those of the first. null: shares are compared. */
  ratio: number | null;
  /** Differences that are less likely by chance are changes. */
  significant: number;
  kinds: string[];
  /** What was done in how many samples of each recording; empty without jitted code. */
  activities: [string, [number, number]][];
}

/** Numbers of samples in both recordings, and the probability of such a difference by chance. */
export interface Counts {
  before: number;
  after: number;
  byChance: number;
}

export type Verdict = "new" | "more" | "less" | "gone" | "noise";

/** Changes up to these, in percent, have a colour each; larger ones have one more. */
export const STEPS = [0.5, 2, 5];

/** Two recordings, by function and by call. */
export class Comparison {
  readonly about: About;
  readonly function: { name: Uint32Array; file: Uint32Array; line: Uint32Array; column: Uint32Array; kind: Uint32Array; isIn: Uint32Array };
  readonly own: Column;
  readonly total: Column;
  /** The call tree of both: callers have smaller numbers. */
  readonly node: { function: Uint32Array; parent: Int32Array; firstChild: Int32Array; nextSibling: Int32Array; own: Column; total: Column };
  private readonly strings: string[];
  private readonly sharesLine: Uint8Array;

  constructor(columns: Columns) {
    const u32 = (name: string) => columns.u32(name);
    this.about = columns.about as unknown as About;
    this.strings = columns.text("string.text");
    this.function = {
      name: u32("function.name"),
      file: u32("function.file"),
      line: u32("function.line"),
      column: u32("function.column"),
      kind: u32("function.kind"),
      isIn: u32("function.in"),
    };
    this.sharesLine = sharedLines(this.function);
    const column = (name: string, byChance: Float64Array) => ({ before: columns.u64(`${name}_before`), after: columns.u64(`${name}_after`), byChance });
    this.own = column("function.own", columns.f64("function.own_by_chance"));
    this.total = column("function.total", columns.f64("function.total_by_chance"));
    const byChance = columns.f64("node.by_chance");
    this.node = { function: u32("node.function"), ...relatives(u32("node.up")), own: column("node.own", byChance), total: column("node.total", byChance) };
  }

  get functionCount(): number {
    return this.function.name.length;
  }

  name(id: number): string {
    return this.strings[this.function.name[id]] || "[no name]";
  }

  file(id: number): string {
    return this.strings[this.function.file[id]];
  }

  kind(id: number): string {
    return this.about.kinds[this.function.kind[id]];
  }

  /** File and line of a function, and the column if others have its name on this line, or an empty text. */
  place(id: number): string {
    const { line, column } = this.function;
    return placeText(this.file(id), line[id], column[id], this.sharesLine[id] === 1);
  }

  /** The name of a function for views that show names alone. */
  distinctName(id: number): string {
    return distinctName(this.name(id), this.place(id), this.sharesLine[id] === 1);
  }

  /** How much more the second recording has: in percentage points or, of times, in percent of the first recording. */
  change({ before, after }: Counts): number {
    const [allBefore, allAfter] = this.about.samples.map((all) => Math.max(1, all));
    const { ratio } = this.about;
    return 100 * (ratio === null ? after / allAfter - before / allBefore : (after / ratio - before) / allBefore);
  }

  verdict(counts: Counts): Verdict {
    if (counts.byChance >= this.about.significant) return "noise";
    if (counts.before === 0) return "new";
    if (counts.after === 0) return "gone";
    return this.change(counts) > 0 ? "more" : "less";
  }

  /** The name of the colour of a difference. */
  color(counts: Counts): string {
    if (counts.byChance >= this.about.significant) return "--noise";
    const change = this.change(counts);
    const step = STEPS.findIndex((most) => Math.abs(change) <= most);
    return `--${change > 0 ? "more" : "less"}-${(step < 0 ? STEPS.length : step) + 1}`;
  }
}

interface Column {
  before: Float64Array;
  after: Float64Array;
  byChance: Float64Array;
}

/** A row of a column. */
export function at({ before, after, byChance }: Column, row: number): Counts {
  return { before: before[row], after: after[row], byChance: byChance[row] };
}

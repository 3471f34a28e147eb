import type { Code, Listing } from "./code.ts";
import type { Heat } from "./heat.ts";

/** A row of the assembly: an instruction, or the beginning of another place in the source. */
export type AssemblyRow = { instruction: number } | { place: number };

/** The instructions of a code, with a row above those that begin another place in the source. */
export class ListingRows {
  readonly rows: AssemblyRow[] = [];
  private readonly rowOfInstruction: Int32Array;
  private readonly starts: number[];

  constructor(code: Code, { instructions }: Listing) {
    this.starts = instructions.map((each) => each.offset);
    this.rowOfInstruction = new Int32Array(instructions.length);
    let last = "";
    instructions.forEach(({ place }, instruction) => {
      const lines = place < 0 ? "" : linesOf(code, place);
      if (place >= 0 && lines !== last) this.rows.push({ place });
      last = lines;
      this.rowOfInstruction[instruction] = this.rows.length;
      this.rows.push({ instruction });
    });
  }

  /** The row of an instruction, by its number. */
  ofInstruction(instruction: number): number {
    return this.rowOfInstruction[instruction];
  }

  /** The row of the instruction at an offset, or that the offset is within. */
  atOffset(offset: number): number {
    return this.rowOfInstruction[Math.max(0, instructionAt(this.starts, offset))];
  }

  /** The samples of each instruction. */
  heat(byOffset: Map<number, Heat>): Heat[] {
    const heat = this.starts.map(() => ({ own: 0, total: 0 }));
    for (const [offset, { own, total }] of byOffset) {
      // The address of a caller is within its call.
      const at = instructionAt(this.starts, offset);
      if (at < 0) continue;
      heat[at].own += own;
      heat[at].total += total;
    }
    return heat;
  }
}

/** What is shown of a place: others may differ in columns alone. */
function linesOf(code: Code, place: number): string {
  return code.chain(place).map((each) => `${each.function}\n${each.file}\n${each.line}`).join("\n");
}

function instructionAt(starts: number[], offset: number): number {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= offset) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

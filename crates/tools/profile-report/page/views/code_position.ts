import type { Code } from "../model/code.ts";

/** The file that is shown, and the line of it that is marked: 0 if none is. */
export class CodePosition {
  file = "";
  line = 0;

  constructor(private readonly redraw: () => void) {}

  /** Shows another file. */
  show(file: string) {
    this.file = file;
    this.redraw();
  }

  /** Marks a line and its instructions, or nothing if it is marked already. */
  toggle(line: number) {
    this.line = line === this.line ? 0 : line;
    this.redraw();
  }

  /** Marks a line, in this file. */
  goTo(file: string, line: number) {
    this.file = file;
    this.line = line;
    this.redraw();
  }

  /** Whether a place, or what it is inlined into, is in the marked line. */
  isMarked(code: Code, place: number): boolean {
    if (this.line === 0 || place < 0) return false;
    return code.chain(place).some((each) => each.file === this.file && each.line === this.line);
  }
}

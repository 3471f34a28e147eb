import type { Language } from "./language.ts";
import { startOf, tokensOf, type Open, type Token } from "./tokens.ts";

/** So many characters are read at a time, so that the page stays responsive: some milliseconds. */
const SLICE = 200_000;
/** What is behind so many characters of a line has no colours. */
const LONGEST = 20_000;
/** A line has colours in at most so many parts. */
const MOST_TOKENS = 400;

/** The parts of a source that have colours. What is open at the beginning of a line depends on all lines above it, which are read once, and no further than needed. */
export class Highlighter {
  /** What is open at the beginning of each line that is known. */
  private readonly open: (Open | null)[];
  private wanted = -1;
  private isScheduled = false;

  /** `ready`: a line that was not known before is known now. */
  constructor(
    private readonly language: Language,
    private readonly lines: readonly string[],
    private readonly ready: () => void,
  ) {
    this.open = [startOf(language)];
  }

  /** The parts of a line, without those that have no colour; null if the lines above are still to be read. */
  line(row: number): Token[] | null {
    this.read(row);
    if (row >= this.open.length) {
      this.wanted = row;
      this.schedule();
      return null;
    }
    const tokens: Token[] = [];
    tokensOf(this.language, this.text(row), this.open[row], (token) => {
      if (tokens.length < MOST_TOKENS) tokens.push(token);
    });
    return tokens;
  }

  private text(row: number): string {
    const line = this.lines[row];
    return line.length > LONGEST ? line.slice(0, LONGEST) : line;
  }

  /** Reads on until it is known what is open at the beginning of this line, or a slice is read. */
  private read(row: number) {
    let left = this.isScheduled ? 0 : SLICE;
    while (this.open.length <= row && left > 0) {
      const above = this.open.length - 1;
      const text = this.text(above);
      left -= text.length + 1;
      this.open.push(tokensOf(this.language, text, this.open[above], () => undefined));
    }
  }

  private schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setTimeout(() => {
      this.isScheduled = false;
      this.read(this.wanted);
      if (this.open.length > this.wanted) this.ready();
      else this.schedule();
    });
  }
}

import { Columns } from "../read/columns.ts";
import { inflate } from "../read/inflate.ts";
import type { Profile } from "./profile.ts";

export interface Instruction {
  offset: number;
  /** Empty for a run of zeros. */
  bytes: string;
  text: string;
  /** 0: none. */
  label: number;
  /** An offset in the code, or −1. */
  target: number;
  /** The function that it refers to, or −1. */
  function: number;
  /** The place in the source, or −1. */
  place: number;
}

export interface Listing {
  instructions: Instruction[];
  isCut: boolean;
}

export interface Place {
  outer: number;
  function: string;
  file: string;
  line: number;
  column: number;
}

export interface Source {
  lines: string[];
  isNewer: boolean;
  hash: string;
}

/** Machine code and sources. */
export class Code {
  readonly leftOut: { listingsLeftOut: number; listingsUnknown: number; sourcesLeftOut: number; sourcesUnknown: number };
  private readonly places: { outer: Uint32Array; function: Uint32Array; file: Uint32Array; line: Uint32Array; column: Uint32Array };
  private readonly ranges = new Map<number, { first: number; count: number; byte: number; isCut: boolean }>();
  private readonly sources = new Map<string, { first: number; count: number; isNewer: boolean; hash: string }>();
  private readonly files = new Map<number, string>();
  private readonly strings: string[];
  private readonly lines: string[];
  private readonly instruction: { length: Float64Array; bytes: Uint32Array; text: Uint32Array; label: Uint32Array; target: Float64Array; function: Uint32Array; place: Uint32Array };
  private readonly bytes: Uint8Array;

  private constructor(columns: Columns) {
    const u32 = (name: string) => columns.u32(name);
    this.leftOut = columns.about as unknown as Code["leftOut"];
    this.strings = columns.text("string.text");
    this.lines = columns.text("line.text");
    this.bytes = columns.bytes("byte.value");
    this.places = { outer: u32("place.outer?"), function: u32("place.function"), file: u32("place.file"), line: u32("place.line"), column: u32("place.column") };
    this.instruction = {
      length: columns.u64("instruction.length"),
      bytes: u32("instruction.bytes"),
      text: u32("instruction.text"),
      label: u32("instruction.label"),
      target: columns.u64("instruction.target?"),
      function: u32("instruction.function?"),
      place: u32("instruction.place?"),
    };
    let [first, byte] = [0, 0];
    const [counts, sizes, cut] = [u32("listing.instructions"), u32("listing.bytes"), u32("listing.cut")];
    u32("listing.code").forEach((code, row) => {
      this.ranges.set(code, { first, count: counts[row], byte, isCut: cut[row] === 1 });
      first += counts[row];
      byte += sizes[row];
    });
    const file = u32("file.file");
    u32("file.function").forEach((id, row) => this.files.set(id, this.strings[file[row]]));
    let line = 0;
    const [lines, newer, hashes] = [u32("source.lines"), u32("source.newer"), columns.text("source.hash")];
    u32("source.file").forEach((file, row) => {
      this.sources.set(this.strings[file], { first: line, count: lines[row], isNewer: newer[row] === 1, hash: hashes[row] });
      line += lines[row];
    });
  }

  /** Read when it is first needed: it may be larger than all the rest. */
  static async read(): Promise<Code> {
    return new Code(new Columns(await inflate("code-data")));
  }

  has(code: number): boolean {
    return this.ranges.has(code);
  }

  listing(code: number): Listing | null {
    const range = this.ranges.get(code);
    if (!range) return null;
    const instructions = [];
    let [offset, byte] = [0, range.byte];
    const { length, bytes: counts, text, label, target, function: functions, place } = this.instruction;
    for (let at = range.first; at < range.first + range.count; at++) {
      const bytes = Array.from(this.bytes.subarray(byte, byte + counts[at]), (each) => each.toString(16).padStart(2, "0")).join(" ");
      instructions.push({
        offset,
        bytes,
        text: this.strings[text[at]],
        label: label[at],
        target: target[at] - 1,
        function: functions[at] - 1,
        place: place[at] - 1,
      });
      offset += length[at];
      byte += counts[at];
    }
    return { instructions, isCut: range.isCut };
  }

  place(id: number): Place {
    const { outer, function: name, file, line, column } = this.places;
    return { outer: outer[id] - 1, function: this.strings[name[id]], file: this.strings[file[id]], line: line[id], column: column[id] };
  }

  /** The place and those that it is inlined into, the outermost first. */
  chain(id: number): Place[] {
    const chain = [];
    for (let at = id; at >= 0; ) {
      const place = this.place(at);
      chain.push(place);
      at = place.outer;
    }
    return chain.reverse();
  }

  /** The file of a function: as the profile has it, or as the lines of its code have it. */
  fileOf(profile: Profile, id: number): string {
    return profile.strings[profile.function.file[id]] || this.files.get(id) || "";
  }

  source(file: string): Source | null {
    const source = this.sources.get(file);
    if (!source) return null;
    const { first, count, isNewer, hash } = source;
    return { lines: this.lines.slice(first, first + count), isNewer, hash };
  }
}

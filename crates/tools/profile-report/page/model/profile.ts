import { Columns } from "../read/columns.ts";
import { relatives } from "./relatives.ts";
import { distinctName, placeText, sharedLines } from "./shared_lines.ts";

export interface About {
  recording: string;
  host: string;
  machine: string;
  command: string[];
  startUtc: number | null;
  frequency: number | null;
  /** Processes are versions of services, and threads are hosts: their numbers mean nothing. */
  ofFleet: boolean;
  kinds: string[];
  /** What was done in how many samples, most first: of all samples, and then of those of each event. Empty without jitted code. */
  activities: [string, number][][];
}

/** The tables of the profile. A row without a number for another one has −1. */
export class Profile {
  readonly about: About;
  readonly strings: string[];
  readonly process: { pid: Uint32Array; name: Uint32Array };
  readonly thread: { process: Uint32Array; tid: Uint32Array; name: Uint32Array };
  readonly module: { kind: Uint32Array; path: Uint32Array; buildId: string[] };
  readonly event: { name: Uint32Array };
  readonly function: { name: Uint32Array; file: Uint32Array; line: Uint32Array; column: Uint32Array; kind: Uint32Array };
  readonly code: {
    function: Uint32Array;
    symbol: Uint32Array;
    tier: Uint32Array;
    generation: Uint32Array;
    process: Int32Array;
    addressHigh: Uint32Array;
    addressLow: Uint32Array;
    size: Float64Array;
    loaded: Float64Array;
    gone: Float64Array;
    module: Int32Array;
  };
  private readonly sharesLine: Uint8Array;
  readonly frame: {
    function: Uint32Array;
    code: Int32Array;
    module: Int32Array;
    addressHigh: Uint32Array;
    addressLow: Uint32Array;
    offset: Float64Array;
    depth: Uint32Array;
    line: Uint32Array;
    column: Uint32Array;
  };
  /** Callers have smaller numbers. `run`: the length of the run of frames of one function without a name that ends here; 1 for others. */
  readonly stack: { parent: Int32Array; frame: Uint32Array; run: Uint32Array; firstChild: Int32Array; nextSibling: Int32Array };
  /** In the order of time. */
  readonly sample: { time: Float64Array; thread: Uint32Array; event: Uint32Array; weight: Float64Array; stack: Uint32Array };
  readonly unnamed: string[];
  readonly missing: { path: Uint32Array; cause: string[]; samples: Float64Array };

  constructor(columns: Columns) {
    const u32 = (name: string) => columns.u32(name);
    this.about = columns.about as unknown as About;
    this.strings = columns.text("string.text");
    this.process = { pid: u32("process.pid"), name: u32("process.name") };
    this.thread = { process: u32("thread.process"), tid: u32("thread.tid"), name: u32("thread.name") };
    this.module = { kind: u32("module.kind"), path: u32("module.path"), buildId: columns.text("module.build_id") };
    this.event = { name: u32("event.name") };
    this.function = {
      name: u32("function.name"),
      file: u32("function.file"),
      line: u32("function.line"),
      column: u32("function.column"),
      kind: u32("function.kind"),
    };
    this.sharesLine = sharedLines(this.function);
    this.code = {
      function: u32("code.function"),
      symbol: u32("code.symbol"),
      tier: u32("code.tier"),
      generation: u32("code.generation"),
      process: optional(u32("code.process?")),
      addressHigh: u32("code.address_high"),
      addressLow: u32("code.address_low"),
      size: columns.u64("code.size"),
      loaded: columns.f64("code.loaded"),
      gone: columns.f64("code.gone"),
      module: optional(u32("code.module?")),
    };
    this.frame = {
      function: u32("frame.function"),
      code: optional(u32("frame.code?")),
      module: optional(u32("frame.module?")),
      addressHigh: u32("frame.address_high"),
      addressLow: u32("frame.address_low"),
      offset: columns.u64("frame.offset"),
      depth: u32("frame.depth"),
      line: u32("frame.line"),
      column: u32("frame.column"),
    };
    this.stack = { ...relatives(u32("stack.up")), frame: u32("stack.frame"), run: u32("stack.run") };
    this.sample = {
      time: columns.delta("sample.time"),
      thread: u32("sample.thread"),
      event: u32("sample.event"),
      weight: columns.u64("sample.weight"),
      stack: u32("sample.stack"),
    };
    this.unnamed = columns.text("unnamed.line");
    this.missing = {
      path: u32("missing.path"),
      cause: columns.text("missing.cause"),
      samples: columns.u64("missing.samples"),
    };
  }

  get stackCount(): number {
    return this.stack.frame.length;
  }

  get sampleCount(): number {
    return this.sample.stack.length;
  }

  /** The time of the last sample. */
  get end(): number {
    return this.sampleCount > 0 ? this.sample.time[this.sampleCount - 1] : 0;
  }

  functionName(id: number): string {
    return this.strings[this.function.name[id]] || "[no name]";
  }

  functionKind(id: number): string {
    return this.about.kinds[this.function.kind[id]];
  }

  /** File and line of a function, and the column if others have its name on this line, or an empty text. */
  functionPlace(id: number): string {
    const { file, line, column } = this.function;
    return placeText(this.strings[file[id]], line[id], column[id], this.sharesLine[id] === 1);
  }

  /** The name of a function for views that show names alone. */
  distinctName(id: number): string {
    return distinctName(this.functionName(id), this.functionPlace(id), this.sharesLine[id] === 1);
  }

  threadName(id: number): string {
    return this.strings[this.thread.name[id]] || "thread";
  }

  /** A thread in a list: the name alone need not be unique. */
  threadLabel(id: number): string {
    return this.about.ofFleet ? this.threadName(id) : `${this.threadName(id)} ${this.thread.tid[id]}`;
  }

  processLabel(id: number): string {
    const name = this.strings[this.process.name[id]] || "process";
    return this.about.ofFleet ? name : `${name} ${this.process.pid[id]}`;
  }

  /** A process in a sentence. */
  processTitle(id: number): string {
    return this.about.ofFleet ? this.processLabel(id) : `process ${this.process.pid[id]}`;
  }

  threadTitle(id: number): string {
    const process = this.processTitle(this.thread.process[id]);
    return this.about.ofFleet ? `host ${this.threadName(id)} of ${process}` : `thread ${this.thread.tid[id]} of ${process}`;
  }

  codesOf(id: number): number[] {
    const codes = [];
    for (let code = 0; code < this.code.function.length; code++) if (this.code.function[code] === id) codes.push(code);
    const { process, generation } = this.code;
    return codes.sort((a, b) => process[a] - process[b] || generation[a] - generation[b] || a - b);
  }

  codeAddress(code: number): string {
    const low = this.code.addressLow[code].toString(16);
    const high = this.code.addressHigh[code];
    return "0x" + (high > 0 ? high.toString(16) + low.padStart(8, "0") : low);
  }
}

function optional(numbers: Uint32Array): Int32Array {
  const shifted = new Int32Array(numbers.length);
  for (let row = 0; row < numbers.length; row++) shifted[row] = numbers[row] - 1;
  return shifted;
}

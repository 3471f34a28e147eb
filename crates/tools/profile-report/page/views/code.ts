import { el } from "../dom.ts";
import { count, percent, shortPath, size } from "../format.ts";
import { Branches, isBranch } from "../model/branches.ts";
import type { Code, Listing } from "../model/code.ts";
import { heatOfCodes, heatOfLines, heatOfOffsets, type Heat } from "../model/heat.ts";
import type { Session } from "../session.ts";
import { BranchLines } from "./branch_lines.ts";
import { Rows } from "./rows.ts";

/** A row of the assembly: an instruction, or the beginning of another place in the source. */
type AssemblyRow = { instruction: number } | { place: number };

/** Source and assembly of a function side by side, with their samples. */
export class CodeView {
  private readonly source = new Rows(20, "Source");
  private readonly assembly = new Rows(20, "Assembly");
  private readonly branchLines = new BranchLines(this.assembly.element);
  private readonly sourceHead = el("div", { class: "pane-head" });
  private readonly assemblyHead = el("div", { class: "pane-head" });
  private readonly title = el("div", { class: "code-title" });
  private file = "";
  private line = 0;
  private drawn = "";
  private withBytes = false;

  constructor(
    private readonly session: Session,
    private readonly element: HTMLElement,
    private readonly code: () => Promise<Code>,
  ) {
    const pane = (head: HTMLElement, rows: Rows, name: string) => el("section", { class: `pane ${name}` }, head, rows.element);
    element.append(
      this.title,
      el("div", { class: "panes" }, pane(this.sourceHead, this.source, "source"), pane(this.assemblyHead, this.assembly, "assembly")),
    );
  }

  async draw() {
    const { profile, state, counts } = this.session;
    const id = state.fn;
    this.element.classList.toggle("empty", id < 0);
    if (id < 0) {
      this.title.textContent = "Select a function to see its code.";
      return;
    }
    const code = await this.code();
    // Another function may have been selected while the code was read.
    if (this.session.state !== state) return;
    const heat = heatOfCodes(profile, counts);
    const codes = codesWithFunction(this.session, id);
    const chosen = state.code >= 0 ? state.code : [...codes].sort((a, b) => heat[b].own - heat[a].own || heat[b].total - heat[a].total)[0] ?? -1;
    this.drawTitle(id, codes, chosen, heat);

    const fileOf = (each: number) => code.fileOf(profile, each);
    const ofLines = heatOfLines(profile, counts, id, state.code, fileOf);
    const files = [...ofLines.keys()].filter(Boolean);
    const own = fileOf(id);
    if (own && !files.includes(own)) files.unshift(own);
    const subject = `${id}/${chosen}`;
    if (this.drawn !== subject) {
      this.drawn = subject;
      this.file = own || files[0] || "";
      this.line = 0;
    } else if (!files.includes(this.file)) this.file = own || files[0] || "";
    this.drawSource(code, files, ofLines);
    this.drawAssembly(code, chosen);
  }

  private drawTitle(id: number, codes: number[], chosen: number, heat: Heat[]) {
    const { profile, counts } = this.session;
    const { own, total } = this.session.functionCounts(id);
    const select = el("select", { title: "Which compilation", change: (event: Event) => this.session.update({ code: Number((event.target as HTMLSelectElement).value) }) });
    for (const code of codes) {
      const tier = profile.strings[profile.code.tier[code]];
      const generation = profile.code.generation[code];
      const inlined = profile.code.function[code] === id ? "" : `in ${profile.functionName(profile.code.function[code])}`;
      const words = [generation > 0 ? `#${generation}` : "", tier, inlined, `${count(heat[code].own)} samples`].filter(Boolean);
      select.append(el("option", { value: code, selected: code === chosen }, words.join(", ").slice(0, 200)));
    }
    this.title.replaceChildren(
      el("strong", {}, profile.functionName(id)),
      el("span", { class: "muted" }, profile.functionPlace(id)),
      el("span", {}, `self ${percent(own, counts.all)}, total ${percent(total, counts.all)}`),
      ...(codes.length > 1 ? [select] : []),
    );
  }

  private drawSource(code: Code, files: string[], ofLines: Map<string, Map<number, Heat>>) {
    const { profile, counts } = this.session;
    const select = el("select", { title: "Files", change: (event: Event) => ((this.file = (event.target as HTMLSelectElement).value), void this.draw()) });
    for (const file of files) select.append(el("option", { value: file, selected: file === this.file }, shortPath(file)));
    const source = code.source(this.file);
    const lines = ofLines.get(this.file) ?? new Map<number, Heat>();
    const notes = [
      source ? `SHA-256 ${source.hash.slice(0, 12)}` : "",
      source?.isNewer ? "The file was changed after the recording: its lines may be others." : "",
    ];
    this.sourceHead.replaceChildren(
      el("span", {}, "Source"),
      files.length > 1 ? select : el("span", { class: "muted path", title: this.file }, shortPath(this.file)),
      el("span", { class: source?.isNewer ? "warning" : "muted", title: source?.hash ?? "" }, notes[1] || notes[0]),
    );
    // Without the text, the lines that have samples are shown by their numbers.
    const numbers = source ? source.lines.map((_, at) => at + 1) : [...lines.keys()].sort((a, b) => a - b);
    if (numbers.length === 0) {
      const why = this.file ? "No lines are known." : "The function has no known source.";
      this.source.set(1, () => el("div", { class: "note" }, why));
      return;
    }
    this.source.set(numbers.length, (row) => {
      const number = numbers[row];
      const heat = lines.get(number);
      return el(
        "div",
        { class: `source-line ${number === this.line ? "selected" : ""}`, "data-line": number, style: heatStyle(heat, counts.all), click: () => this.choose(number, false) },
        ...heatCells(heat, counts.all),
        el("span", { class: "line-number" }, String(number)),
        el("span", { class: "text" }, source ? source.lines[row] : "(text not found)"),
      );
    });
    const hottest = [...lines.entries()].sort((a, b) => b[1].own - a[1].own || b[1].total - a[1].total)[0]?.[0];
    const at = numbers.indexOf(this.line || hottest || profile.function.line[this.session.state.fn]);
    if (at >= 0) this.source.reveal(at, this.line === 0);
  }

  private drawAssembly(code: Code, chosen: number) {
    const { profile, counts } = this.session;
    const listing = chosen >= 0 ? code.listing(chosen) : null;
    const bytes = el("button", { class: "small", "aria-pressed": String(this.withBytes), title: "Show the bytes of instructions", click: () => ((this.withBytes = !this.withBytes), void this.draw()) }, "bytes");
    const drawHead = (notDrawn: number) =>
      this.assemblyHead.replaceChildren(
        el("span", {}, "Assembly"),
        ...(chosen >= 0 ? [el("span", { class: "muted" }, `${profile.codeAddress(chosen)}, ${size(profile.code.size[chosen])}`)] : []),
        ...(listing?.isCut ? [el("span", { class: "warning" }, "The code is longer than what is shown.")] : []),
        ...(notDrawn > 0 ? [el("span", { class: "muted" }, `Branches to ${count(notDrawn)} targets are not drawn.`)] : []),
        bytes,
      );
    this.element.classList.toggle("with-bytes", this.withBytes);
    if (!listing) {
      drawHead(0);
      this.branchLines.show(null);
      const why =
        chosen < 0 ? "No machine code of this function was sampled." : code.leftOut.listingsLeftOut > 0 ? "The machine code is not known, or was left out as the report is large." : "The machine code is not known.";
      this.assembly.set(1, () => el("div", { class: "note" }, why));
      return;
    }
    const heat = heatByInstruction(listing, heatOfOffsets(profile, counts, chosen));
    const rows: AssemblyRow[] = [];
    let last = "";
    listing.instructions.forEach(({ place }, instruction) => {
      const lines = place < 0 ? "" : linesOf(code, place);
      if (place >= 0 && lines !== last) rows.push({ place });
      last = lines;
      rows.push({ instruction });
    });
    const rowOfInstruction = new Int32Array(listing.instructions.length);
    rows.forEach((row, at) => "instruction" in row && (rowOfInstruction[row.instruction] = at));
    const starts = listing.instructions.map((each) => each.offset);
    const rowOf = (offset: number) => rowOfInstruction[Math.max(0, place(starts, offset))];
    const jumps: [number, number][] = [];
    listing.instructions.forEach((each, at) => isBranch(each) && jumps.push([rowOfInstruction[at], rowOf(each.target)]));
    const branches = new Branches(jumps);
    this.branchLines.show(branches);
    drawHead(branches.leftOut);
    this.assembly.set(rows.length, (at) => {
      const row = rows[at];
      const element = "place" in row ? this.placeRow(code, row.place) : this.instructionRow(code, listing, row.instruction, heat, rowOf);
      const lines = this.branchLines.row(at);
      if (lines) element.append(lines);
      return element;
    });
    let best = -1;
    heat.forEach((each, at) => {
      if (each.own > (best < 0 ? 0 : heat[best].own)) best = at;
    });
    const line = this.line === 0 ? best : listing.instructions.findIndex(({ place }) => this.isAtLine(code, place));
    if (line >= 0) this.assembly.reveal(rowOf(listing.instructions[line].offset), true);
  }

  private placeRow(code: Code, place: number): HTMLElement {
    const chain = code.chain(place);
    const words: (HTMLElement | string)[] = [];
    chain.forEach((each, depth) => {
      if (depth > 0) words.push(" › ");
      const text = `${depth > 0 ? each.function : ""}${depth > 0 && each.line > 0 ? ":" : ""}${each.line > 0 ? each.line : ""}` || each.function;
      words.push(el("span", { class: depth > 0 ? "inlined" : "", title: `${each.function} at ${each.file}:${each.line}` }, text));
    });
    const inner = chain[chain.length - 1];
    const go = () => {
      this.file = inner.file;
      this.choose(inner.line, true);
    };
    const indent = Math.min(chain.length - 1, 12);
    return el("div", { class: `place-line ${indent > 0 ? "is-inlined" : ""} ${this.isAtLine(code, place) ? "selected" : ""}`, style: `--inline-depth:${indent}`, click: go }, ...words);
  }

  private instructionRow(code: Code, listing: Listing, at: number, heat: Heat[], rowOf: (offset: number) => number): HTMLElement {
    const { offset, bytes, text, label, target, function: refers, place } = listing.instructions[at];
    const { all } = this.session.counts;
    const jump = target >= 0 ? () => this.assembly.reveal(rowOf(target), true) : refers >= 0 ? () => this.session.update({ fn: refers, code: -1 }) : undefined;
    const depth = place >= 0 ? Math.min(code.chain(place).length - 1, 12) : 0;
    return el(
      "div",
      { class: `instruction ${this.isAtLine(code, place) ? "selected" : ""}`, "data-offset": offset, style: `${heatStyle(heat[at], all)};--inline-depth:${depth}` },
      ...heatCells(heat[at], all),
      el("span", { class: "offset" }, offset.toString(16)),
      el("span", { class: "bytes" }, bytes),
      el("span", { class: "label" }, label > 0 ? `L${label}:` : ""),
      el("span", { class: `text ${jump ? "link" : ""}`, title: jump ? "Click to go to what it refers to." : undefined, click: jump }, text),
    );
  }

  private isAtLine(code: Code, place: number): boolean {
    if (this.line === 0 || place < 0) return false;
    return code.chain(place).some((each) => each.file === this.file && each.line === this.line);
  }

  /** Marks a line of the source and its instructions, or nothing if it is marked already. */
  private choose(line: number, fromAssembly: boolean) {
    this.line = line === this.line && !fromAssembly ? 0 : line;
    void this.draw();
  }
}

/** The codes of a function and, if they were sampled, those into which it was inlined. */
export function codesWithFunction(session: Session, id: number): number[] {
  const { profile } = session;
  const codes = new Set(profile.codesOf(id));
  profile.frame.function.forEach((each, frame) => {
    if (each === id && profile.frame.code[frame] >= 0) codes.add(profile.frame.code[frame]);
  });
  return [...codes];
}

/** What is shown of a place: others may differ in columns alone. */
function linesOf(code: Code, place: number): string {
  return code.chain(place).map((each) => `${each.function}\n${each.file}\n${each.line}`).join("\n");
}

function heatByInstruction(listing: Listing, byOffset: Map<number, Heat>): Heat[] {
  const heat = listing.instructions.map(() => ({ own: 0, total: 0 }));
  const starts = listing.instructions.map((each) => each.offset);
  for (const [offset, { own, total }] of byOffset) {
    // The address of a caller is within its call.
    const at = place(starts, offset);
    if (at < 0) continue;
    heat[at].own += own;
    heat[at].total += total;
  }
  return heat;
}

function place(starts: number[], offset: number): number {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= offset) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function heatCells(heat: Heat | undefined, all: number): HTMLElement[] {
  const cell = (part: number | undefined, kind: string) => el("span", { class: `heat ${kind}`, title: part ? `${count(part)} samples` : undefined }, part ? percent(part, all).replace(" %", "") : "");
  return [cell(heat?.own, "own"), cell(heat?.total, "total")];
}

function heatStyle(heat: Heat | undefined, all: number): string {
  if (!heat || heat.own === 0 || all === 0) return "";
  // The eye sees shares as it hears loudness.
  return `--heat:${Math.min(1, 0.12 + Math.sqrt(heat.own / all)).toFixed(3)}`;
}

import { el } from "../dom.ts";
import { count, size } from "../format.ts";
import { Branches, isBranch } from "../model/branches.ts";
import type { Code, Listing } from "../model/code.ts";
import { heatOfOffsets, type Heat } from "../model/heat.ts";
import { ListingRows } from "../model/listing.ts";
import type { Session } from "../session.ts";
import { BranchLines } from "./branch_lines.ts";
import type { CodePosition } from "./code_position.ts";
import { heatCells, heatStyle } from "./heat_cells.ts";
import { Rows } from "./rows.ts";

/** Inlined calls below these are not indented further. */
const DEEPEST = 12;

/** The machine code of a compilation, with the samples of its instructions. */
export class AssemblyPane {
  readonly element: HTMLElement;
  private readonly rows = new Rows(20, "Assembly");
  private readonly branchLines = new BranchLines(this.rows.element);
  private readonly head = el("div", { class: "pane-head" });

  constructor(
    private readonly session: Session,
    private readonly position: CodePosition,
  ) {
    this.element = el("section", { class: "pane assembly" }, this.head, this.rows.element);
  }

  draw(code: Code, chosen: number) {
    const listing = chosen >= 0 ? code.listing(chosen) : null;
    if (!listing) {
      this.drawHead(chosen, null, 0);
      this.branchLines.show(null);
      const why =
        chosen < 0 ? "No machine code of this function was sampled." : code.leftOut.listingsLeftOut > 0 ? "The machine code is not known, or was left out as the report is large." : "The machine code is not known.";
      this.rows.set(1, () => el("div", { class: "note" }, why));
      return;
    }
    const { profile, counts } = this.session;
    const listed = new ListingRows(code, listing);
    const heat = listed.heat(heatOfOffsets(profile, counts, chosen));
    const jumps: [number, number][] = [];
    listing.instructions.forEach((each, at) => isBranch(each) && jumps.push([listed.ofInstruction(at), listed.atOffset(each.target)]));
    const branches = new Branches(jumps);
    this.branchLines.show(branches);
    this.drawHead(chosen, listing, branches.leftOut);
    this.rows.set(listed.rows.length, (at) => {
      const row = listed.rows[at];
      const element = "place" in row ? this.placeRow(code, row.place) : this.instructionRow(code, listing, row.instruction, heat, listed);
      const lines = this.branchLines.row(at);
      if (lines) element.append(lines);
      return element;
    });
    let best = -1;
    heat.forEach((each, at) => {
      if (each.own > (best < 0 ? 0 : heat[best].own)) best = at;
    });
    const line = this.position.line === 0 ? best : listing.instructions.findIndex(({ place }) => this.position.isMarked(code, place));
    if (line >= 0) this.rows.reveal(listed.ofInstruction(line), true);
  }

  private drawHead(chosen: number, listing: Listing | null, notDrawn: number) {
    const { profile } = this.session;
    const bytes = el("button", { class: "small", title: "Show the bytes of instructions", click: () => toggle() }, "bytes");
    const show = (isOn: boolean) => bytes.setAttribute("aria-pressed", String(isOn));
    const toggle = () => show(this.element.classList.toggle("with-bytes"));
    show(this.element.classList.contains("with-bytes"));
    this.head.replaceChildren(
      el("span", {}, "Assembly"),
      ...(chosen >= 0 ? [el("span", { class: "muted" }, `${profile.codeAddress(chosen)}, ${size(profile.code.size[chosen])}`)] : []),
      ...(listing?.isCut ? [el("span", { class: "warning" }, "The code is longer than what is shown.")] : []),
      ...(notDrawn > 0 ? [el("span", { class: "muted" }, `Branches to ${count(notDrawn)} targets are not drawn.`)] : []),
      bytes,
    );
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
    const indent = Math.min(chain.length - 1, DEEPEST);
    return el(
      "div",
      { class: `place-line ${indent > 0 ? "is-inlined" : ""} ${this.position.isMarked(code, place) ? "selected" : ""}`, style: `--inline-depth:${indent}`, click: () => this.position.goTo(inner.file, inner.line) },
      ...words,
    );
  }

  private instructionRow(code: Code, listing: Listing, at: number, heat: Heat[], listed: ListingRows): HTMLElement {
    const { offset, bytes, text, label, target, function: refers, place } = listing.instructions[at];
    const { all } = this.session.counts;
    const jump = target >= 0 ? () => this.rows.reveal(listed.atOffset(target), true) : refers >= 0 ? () => this.session.update({ fn: refers, code: -1 }) : undefined;
    const depth = place >= 0 ? Math.min(code.chain(place).length - 1, DEEPEST) : 0;
    return el(
      "div",
      { class: `instruction ${this.position.isMarked(code, place) ? "selected" : ""}`, "data-offset": offset, style: `${heatStyle(heat[at], all)};--inline-depth:${depth}` },
      ...heatCells(heat[at], all),
      el("span", { class: "offset" }, offset.toString(16)),
      el("span", { class: "bytes" }, bytes),
      el("span", { class: "label" }, label > 0 ? `L${label}:` : ""),
      el("span", { class: `text ${jump ? "link" : ""}`, title: jump ? "Click to go to what it refers to." : undefined, click: jump }, text),
    );
  }
}

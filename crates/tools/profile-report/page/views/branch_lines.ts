import { el } from "../dom.ts";
import type { Branches } from "../model/branches.ts";

/** The distance of two lanes, and the space between the first one and the instructions. */
const [LANE, SPACE] = [7, 12];

/** Draws branches at the left of instructions, row by row, and highlights those of the row under the pointer. */
export class BranchLines {
  private branches: Branches | null = null;
  private highlighted = new Set<number>();

  constructor(private readonly element: HTMLElement) {
    element.addEventListener("mouseover", (event) => this.hover(event.target as HTMLElement));
    element.addEventListener("mouseleave", () => this.highlight([]));
  }

  /** Shows these from now on. */
  show(branches: Branches | null) {
    this.branches = branches;
    this.highlighted.clear();
    const width = branches ? branches.width : 0;
    this.element.style.setProperty("--branches", width > 0 ? `${width * LANE + SPACE}px` : "0px");
  }

  /** The part of the lines that is in a row. */
  row(row: number): HTMLElement | null {
    if (!this.branches) return null;
    const lines = this.branches.at(row).flatMap(({ lane, target, sources, top, bottom }) => {
      const isOn = this.highlighted.has(target) ? "on" : "";
      const right = lane * LANE + SPACE - 1;
      const piece = (kind: string, style: string) => el("i", { class: `${kind} ${isOn}`, "data-branch": target, style });
      const line = piece("line", `right:${right}px;top:${row === top ? "50%" : "0"};bottom:${row === bottom ? "50%" : "0"}`);
      if (row === target) return [line, piece("turn", `width:${right}px`), piece("arrow", "")];
      return sources.includes(row) ? [line, piece("turn", `width:${right}px`)] : [line];
    });
    return el("span", { class: "branches", "data-row": row, "aria-hidden": "true" }, ...lines);
  }

  /** The branches that begin or end in the row of an element. */
  private hover(element: HTMLElement) {
    const row = element.closest(".row")?.querySelector<HTMLElement>(".branches")?.dataset.row;
    const ends = row === undefined ? [] : this.branches?.at(Number(row)).filter(({ target, sources }) => target === Number(row) || sources.includes(Number(row)));
    this.highlight((ends ?? []).map(({ target }) => target));
  }

  private highlight(targets: number[]) {
    this.highlighted = new Set(targets);
    for (const piece of this.element.querySelectorAll<HTMLElement>("[data-branch]")) piece.classList.toggle("on", this.highlighted.has(Number(piece.dataset.branch)));
  }
}

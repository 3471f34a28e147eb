import { el } from "../dom.ts";
import { count } from "../format.ts";
import type { Code } from "../model/code.ts";
import type { Session } from "../session.ts";
import { shareCell } from "./cells.ts";

/** What has no name, where stacks end too early, and which files are missing: and why. */
export class Unnamed {
  constructor(
    private readonly session: Session,
    private readonly element: HTMLElement,
    private readonly code: () => Promise<Code>,
  ) {}

  async draw() {
    const { profile, counts, items, grouping } = this.session;
    const of = (kind: string) => {
      const chosen = [];
      for (let item = 0; item < grouping.count; item++) {
        if (items.total[item] > 0 && profile.functionKind(grouping.functionOf[item]) === kind) chosen.push(item);
      }
      return chosen.sort((a, b) => items.total[b] - items.total[a] || a - b).slice(0, 500);
    };
    const table = (title: string, text: string, rows: HTMLElement[], none: string) =>
      el("section", { class: "unnamed" }, el("h2", {}, title), el("p", { class: "muted" }, text), ...(rows.length > 0 ? rows : [el("p", {}, none)]));
    const row = (item: number) =>
      el(
        "button",
        { class: "unnamed-row", click: () => this.session.update({ fn: grouping.functionOf[item], focus: grouping.functionOf[item], inverted: true, view: "tree", code: -1 }) },
        shareCell(items.total[item], counts.all, "total"),
        el("span", { class: "number" }, count(items.total[item])),
        el("span", { class: "name" }, grouping.name(item)),
      );
    const missing = profile.missing.cause.map((cause, at) =>
      el(
        "div",
        { class: "unnamed-row" },
        shareCell(profile.missing.samples[at], profile.sampleCount, "own"),
        el("span", { class: "number" }, count(profile.missing.samples[at])),
        el("span", { class: "name" }, el("span", {}, profile.strings[profile.missing.path[at]]), el("span", { class: "muted" }, ` ${cause}`)),
      ),
    );
    const said = profile.unnamed.map((line) => el("p", {}, line));
    const sections = [
      ...(said.length > 0 ? [el("section", { class: "unnamed" }, el("h2", {}, "What makes code have a name"), ...said)] : []),
      table("Code without a name", "Samples with such code on their stack, in the selection. Click for the callers.", of("unknown").map(row), "All code has a name."),
      table("Stacks that end too early", "Where the callers of a function are not known, and why. Click to see below what.", of("end of stack").map(row), "No stack ends for a known reason."),
      table("Files that cannot be looked into", "Samples whose innermost frame is in the file, of all.", missing, "No file is missing."),
    ];
    this.element.replaceChildren(...sections);
    const { leftOut } = await this.code();
    const notes: [number, string][] = [
      [leftOut.listingsUnknown, "sampled pieces of code have no assembly here: their bytes are not known, or their machine is not supported."],
      [leftOut.listingsLeftOut, "sampled pieces of code have no assembly here, as the report would be too large."],
      [leftOut.sourcesUnknown, "sampled source files were not found."],
      [leftOut.sourcesLeftOut, "sampled source files are left out, as the report would be too large."],
    ];
    const lines = notes.filter(([number]) => number > 0).map(([number, text]) => el("p", {}, `${count(number)} ${text}`));
    this.element.replaceChildren(...sections, el("section", { class: "unnamed" }, el("h2", {}, "What this report does not have"), ...(lines.length > 0 ? lines : [el("p", {}, "It has the code and the sources of all that was sampled.")])));
  }
}

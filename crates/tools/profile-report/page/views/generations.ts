import { el } from "../dom.ts";
import { count, duration, size } from "../format.ts";
import type { Code } from "../model/code.ts";
import { difference } from "../model/difference.ts";
import { heatOfCodes } from "../model/heat.ts";
import type { Session } from "../session.ts";
import { shareCell } from "./cells.ts";
import { Rows } from "./rows.ts";

/** Every compilation of a function on an axis of time, and how the assembly of two of them differs. */
export class Generations {
  private readonly title = el("div", { class: "code-title" });
  private readonly list = el("div", { class: "generations" });
  private readonly rows = new Rows(20, "Difference");
  private readonly head = el("div", { class: "pane-head" });
  private pair: [number, number] = [-1, -1];
  private fn = -1;

  constructor(
    private readonly session: Session,
    private readonly element: HTMLElement,
    private readonly code: () => Promise<Code>,
  ) {
    element.append(this.title, this.list, el("section", { class: "pane difference" }, this.head, this.rows.element));
  }

  async draw() {
    const { profile, state, counts, categories } = this.session;
    const id = state.fn;
    const codes = id < 0 ? [] : profile.codesOf(id);
    this.element.classList.toggle("empty", codes.length === 0);
    if (codes.length === 0) {
      this.title.textContent = id < 0 ? "Select a function to see its compilations." : `No machine code of ${profile.functionName(id)} is known.`;
      return;
    }
    const heat = heatOfCodes(profile, counts);
    if (this.fn !== id) {
      this.fn = id;
      const hot = codes.filter((each) => heat[each].total > 0);
      const from = hot.length > 1 ? hot : codes;
      this.pair = [from[Math.max(0, from.length - 2)], from[from.length - 1]];
    }
    this.title.replaceChildren(
      el("strong", {}, profile.functionName(id)),
      el("span", { class: "muted" }, profile.functionPlace(id)),
      el("span", {}, codes.length === 1 ? "1 compilation" : `${count(codes.length)} compilations`),
    );
    const whole = Math.max(1, profile.end);
    const part = (time: number) => (100 * Math.min(whole, Math.max(0, time))) / whole;
    const colorOf = new Map(categories.list.map((each) => [`${each.kind}\n${each.tier}`, each.color]));
    const rows = codes.slice(0, 1000).map((each) => {
      const { tier, generation, loaded, gone, process } = profile.code;
      const tierName = profile.strings[tier[each]];
      const color = colorOf.get(`jitted\n${tierName}`) ?? colorOf.get(`${profile.functionKind(id)}\n${tierName}`) ?? `--${profile.functionKind(id).replaceAll(" ", "-")}`;
      const from = Number.isNaN(loaded[each]) ? 0 : part(loaded[each]);
      const until = Number.isNaN(gone[each]) ? 100 : part(gone[each]);
      const bar = el("span", { class: "life", style: `left:${from}%;width:${Math.max(0.4, until - from)}%;background:var(${color})` });
      const life = `${Number.isNaN(loaded[each]) ? "before the recording, or not known" : duration(loaded[each])} to ${Number.isNaN(gone[each]) ? "the end" : duration(gone[each])}`;
      const pick = (side: 0 | 1) =>
        el("input", { type: "radio", name: `side-${side}`, title: side === 0 ? "Compare this one" : "with this one", checked: this.pair[side] === each, change: () => ((this.pair[side] = each), void this.drawDifference()) });
      return el(
        "div",
        { class: "generation", "data-code": each },
        el("span", {}, pick(0), pick(1)),
        el("button", { class: "small", title: "Show its code", click: () => this.session.update({ view: "code", code: each }) }, generation[each] > 0 ? `#${generation[each]}` : "code"),
        el("span", {}, tierName || profile.functionKind(id)),
        el("span", { class: "number" }, size(profile.code.size[each])),
        shareCell(heat[each].own, counts.all, "own"),
        el("span", { class: "number" }, count(heat[each].own)),
        el("span", { class: "lane", title: life }, bar),
        el("span", { class: "muted" }, process[each] >= 0 && profile.process.pid.length > 1 ? profile.processTitle(process[each]) : ""),
      );
    });
    const labels = ["Compare", "", "Tier", "Size", "Self", "", `Time: 0 to ${duration(whole)}`, ""];
    const hidden = codes.length - rows.length;
    this.list.replaceChildren(
      el("div", { class: "generation head" }, ...labels.map((label) => el("span", {}, label))),
      ...rows,
      ...(hidden > 0 ? [el("div", { class: "note" }, `${count(hidden)} more are not shown.`)] : []),
    );
    await this.drawDifference();
  }

  private async drawDifference() {
    const [a, b] = this.pair;
    const code = await this.code();
    const [left, right] = [code.listing(a), code.listing(b)];
    const { generation, tier } = this.session.profile.code;
    const name = (each: number) => `#${generation[each]} ${this.session.profile.strings[tier[each]]}`.trim();
    if (a === b || !left || !right) {
      this.head.replaceChildren(el("span", {}, "Difference of assembly"));
      const why = a === b ? "Select two compilations to compare." : `The machine code of ${!left ? name(a) : name(b)} is not in the report: it was not sampled, or its bytes are not known.`;
      this.rows.set(1, () => el("div", { class: "note" }, why));
      return;
    }
    const texts = [left, right].map((each) => each.instructions.map((row) => row.text));
    const lines = difference(texts[0], texts[1]);
    const removed = lines.filter((line) => line.right < 0).length;
    const added = lines.filter((line) => line.left < 0).length;
    this.head.replaceChildren(
      el("span", {}, `Difference of assembly: ${name(a)} to ${name(b)}`),
      el("span", { class: "muted" }, `instructions: ${count(removed)} removed, ${count(added)} added, ${count(lines.length - removed - added)} the same`),
    );
    this.rows.set(lines.length, (at) => {
      const { left: from, right: to } = lines[at];
      const kind = from < 0 ? "added" : to < 0 ? "removed" : "same";
      const label = (listing: typeof left, row: number) => (row < 0 ? "" : listing!.instructions[row].offset.toString(16));
      return el(
        "div",
        { class: `different ${kind}` },
        el("span", { class: "offset" }, label(left, from)),
        el("span", { class: "offset" }, label(right, to)),
        el("span", { class: "sign" }, kind === "added" ? "+" : kind === "removed" ? "−" : ""),
        el("span", { class: "text" }, from < 0 ? texts[1][to] : texts[0][from]),
      );
    });
  }
}

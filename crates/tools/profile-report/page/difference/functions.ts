import { el } from "../dom.ts";
import { count, percent, probability, signed } from "../format.ts";
import { Rows } from "../views/rows.ts";
import { at, type Counts, type Verdict } from "./comparison.ts";
import { unit } from "./describe.ts";
import type { Changed, Session } from "./session.ts";
import type { Order } from "./state.ts";

interface Row {
  id: number;
  counts: Counts;
  change: number;
  verdict: Verdict;
}

const VERDICTS: Record<Verdict, string> = {
  new: "Only in the second recording",
  more: "More than before",
  less: "Less than before",
  gone: "Only in the first recording",
  noise: "May be chance",
};

/** The functions of both recordings. */
export class Functions {
  private readonly list = new Rows(24, "Functions");
  private readonly head = el("div", { class: "head difference-grid" });
  private rows: Row[] = [];

  constructor(
    private readonly session: Session,
    element: HTMLElement,
  ) {
    element.append(this.head, this.list.element);
  }

  /** Number of functions that are shown. */
  get count(): number {
    return this.rows.length;
  }

  changed(changed: Changed) {
    if (changed.has("compared") || changed.has("changes") || changed.has("order") || changed.has("query")) this.arrange();
    this.draw();
    if (!changed.has("fn")) return;
    const selected = this.selected;
    if (selected >= 0) this.list.reveal(selected);
  }

  /** Selects a neighbour; false if the keyboard is not in the table. */
  move(by: number): boolean {
    if (document.activeElement !== this.list.element) return false;
    const next = this.rows[Math.min(this.rows.length - 1, Math.max(0, this.selected + by))];
    if (next) this.session.update({ fn: next.id });
    return true;
  }

  private get selected(): number {
    const { fn } = this.session.state;
    return this.rows.findIndex((row) => row.id === fn);
  }

  private arrange() {
    const { comparison, state, matches } = this.session;
    const rows: Row[] = [];
    for (let id = 0; id < comparison.functionCount; id++) {
      const counts = at(comparison[state.compared], id);
      if ((counts.before === 0 && counts.after === 0) || matches?.[id] === 0) continue;
      const verdict = comparison.verdict(counts);
      if (state.changes && verdict === "noise") continue;
      rows.push({ id, counts, change: comparison.change(counts), verdict });
    }
    const byChange = (a: Row, b: Row) => Math.abs(b.change) - Math.abs(a.change) || a.id - b.id;
    const verdicts = Object.keys(VERDICTS);
    const orders: Record<Order, (a: Row, b: Row) => number> = {
      change: byChange,
      before: (a, b) => b.counts.before - a.counts.before || byChange(a, b),
      after: (a, b) => b.counts.after - a.counts.after || byChange(a, b),
      chance: (a, b) => a.counts.byChance - b.counts.byChance || byChange(a, b),
      verdict: (a, b) => verdicts.indexOf(a.verdict) - verdicts.indexOf(b.verdict) || byChange(a, b),
      name: (a, b) => {
        const [left, right] = [comparison.name(a.id), comparison.name(b.id)];
        return left === right ? a.id - b.id : left < right ? -1 : 1;
      },
    };
    this.rows = rows.sort(orders[state.order]);
  }

  private draw() {
    const { comparison, state } = this.session;
    const [allBefore, allAfter] = comparison.about.samples;
    this.drawHead();
    this.list.set(this.rows.length, (row) => {
      const { id, counts, change, verdict } = this.rows[row];
      const number = (text: string) => el("span", { class: "number" }, text);
      return el(
        "div",
        { class: `difference-grid ${verdict === "noise" ? "is-noise" : ""} ${id === state.fn ? "selected" : ""}`, "data-function": id, click: () => this.session.update({ fn: id }) },
        el("span", { class: "number" }, el("span", { class: "swatch", style: `background:var(${comparison.color(counts)})` }), signed(change)),
        number(percent(counts.before, allBefore)),
        number(count(counts.before)),
        number(percent(counts.after, allAfter)),
        number(count(counts.after)),
        number(probability(counts.byChance)),
        el("span", { title: VERDICTS[verdict] }, verdict),
        el("span", { class: "name" }, comparison.name(id)),
        el("span", { class: "muted path", title: comparison.place(id) }, comparison.place(id)),
      );
    });
  }

  private drawHead() {
    const { state, comparison } = this.session;
    const cell = (label: string, order: Order, title: string) =>
      el("button", { class: `${order === state.order ? "sorted" : ""} ${order}`, title: `${title} Click to sort.`, click: () => this.session.update({ order }) }, label);
    this.head.replaceChildren(
      cell("Change", "change", `In ${unit(comparison)}.`),
      cell("Before", "before", "In the first recording."),
      el("span", {}, ""),
      cell("After", "after", "In the second recording."),
      el("span", {}, ""),
      cell("By chance", "chance", `The probability of such a difference if nothing changed. It takes into account that many functions were compared${comparison.about.runs.some((runs) => runs > 1) ? ", and how much recordings of one side differ" : ""}.`),
      cell("Verdict", "verdict", "Whether the difference is more than chance."),
      cell("Function", "name", "By name."),
      el("span", {}, "Source"),
    );
  }
}

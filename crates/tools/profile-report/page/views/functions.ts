import { el } from "../dom.ts";
import { count } from "../format.ts";
import type { Session } from "../session.ts";
import { shareCell, swatch } from "./cells.ts";
import { Rows } from "./rows.ts";

type Column = "own" | "total" | "name";

/** The functions, by their samples. */
export class Functions {
  private readonly rows = new Rows(24, "Functions");
  private readonly head: HTMLElement;
  private order: Column = "own";
  private items: number[] = [];

  constructor(
    private readonly session: Session,
    element: HTMLElement,
  ) {
    this.head = el("div", { class: "head functions-grid" });
    element.append(this.head, this.rows.element);
  }

  draw() {
    const { grouping, items, counts, search, profile, categories, state } = this.session;
    const chosen: number[] = [];
    for (let item = 0; item < grouping.count; item++) {
      if (items.total[item] > 0 && (search.isEmpty || search.has(grouping.functionOf[item]))) chosen.push(item);
    }
    const { own, total } = items;
    const compare = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);
    const place = (item: number) => profile.functionPlace(grouping.functionOf[item]);
    // As all views sort functions: `Totals::functions`.
    const byName = (a: number, b: number) => compare(grouping.name(a), grouping.name(b)) || compare(place(a), place(b)) || a - b;
    const orders = {
      own: (a: number, b: number) => own[b] - own[a] || total[b] - total[a] || byName(a, b),
      total: (a: number, b: number) => total[b] - total[a] || own[b] - own[a] || byName(a, b),
      name: byName,
    };
    this.items = chosen.sort(orders[this.order]);
    this.drawHead();
    this.rows.set(chosen.length, (row) => {
      const item = this.items[row];
      const id = grouping.functionOf[item];
      const category = grouping.categoryOf[item];
      return el(
        "div",
        {
          class: `functions-grid ${id === state.fn ? "selected" : ""}`,
          "data-function": id,
          click: () => this.session.update({ fn: id, code: -1 }),
          dblclick: () => this.session.update({ fn: id, code: -1, view: "code" }),
        },
        shareCell(own[item], counts.all, "own"),
        el("span", { class: "number" }, count(own[item])),
        shareCell(total[item], counts.all, "total"),
        el("span", { class: "number" }, count(total[item])),
        el("span", { class: "name" }, swatch(this.session, category), grouping.name(item)),
        el("span", { class: "muted" }, categories.list[category].label),
        el("span", { class: "muted path", title: profile.functionPlace(id) }, profile.functionPlace(id)),
      );
    });
  }

  private drawHead() {
    const cell = (label: string, column: Column, title: string) =>
      el(
        "button",
        {
          class: `${column === this.order ? "sorted" : ""} ${column}`,
          title,
          click: () => {
            this.order = column;
            this.draw();
          },
        },
        label,
      );
    this.head.replaceChildren(
      cell("Self", "own", "In the function itself. Click to sort."),
      el("span", {}, ""),
      cell("Total", "total", "In the function and all that it calls. Click to sort."),
      el("span", {}, ""),
      cell("Function", "name", "Click to sort by name."),
      el("span", {}, "Kind"),
      el("span", {}, "Source"),
    );
  }

  move(by: number) {
    const { fn } = this.session.state;
    const at = this.items.findIndex((item) => this.session.grouping.functionOf[item] === fn);
    const next = Math.min(this.items.length - 1, Math.max(0, at + by));
    if (this.items.length === 0) return;
    this.session.update({ fn: this.session.grouping.functionOf[this.items[next]], code: -1 });
    this.rows.reveal(next);
  }
}

import { el } from "../dom.ts";

/** A list of rows of equal height, of which only those in view are elements. */
export class Rows {
  readonly element: HTMLElement;
  private readonly space: HTMLElement;
  private count = 0;
  private render: (row: number) => HTMLElement = () => el("div");
  private shown = "";

  constructor(
    private readonly height: number,
    label: string,
  ) {
    this.space = el("div", { class: "rows-space" });
    this.element = el("div", { class: "rows", tabindex: 0, role: "list", "aria-label": label }, this.space);
    this.element.addEventListener("scroll", () => this.draw(false), { passive: true });
    new ResizeObserver(() => this.draw(false)).observe(this.element);
    addEventListener("beforeprint", () => this.draw(true, 60));
    addEventListener("afterprint", () => this.draw(true));
  }

  set(count: number, render: (row: number) => HTMLElement) {
    this.count = count;
    this.render = render;
    this.draw(true);
  }

  /** Draws the rows in view once more. */
  redraw() {
    this.draw(true);
  }

  /** Scrolls as far as is needed to show a row. */
  reveal(row: number, inMiddle = false) {
    const { scrollTop, clientHeight } = this.element;
    const top = row * this.height;
    if (inMiddle) this.element.scrollTop = top - clientHeight / 2;
    else if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.element.scrollTop = top + this.height - clientHeight;
    this.draw(false);
  }

  private draw(isChanged: boolean, printed = 0) {
    const { scrollTop, clientHeight } = this.element;
    const from = printed > 0 ? 0 : Math.max(0, Math.floor(scrollTop / this.height) - 4);
    const until = Math.min(this.count, printed || Math.ceil((scrollTop + clientHeight) / this.height) + 4);
    const shown = `${from}-${until}`;
    if (!isChanged && shown === this.shown) return;
    this.shown = shown;
    this.space.style.height = `${(printed > 0 ? until : this.count) * this.height}px`;
    const rows = [];
    for (let row = from; row < until; row++) {
      const element = this.render(row);
      element.classList.add("row");
      element.setAttribute("role", "listitem");
      element.style.top = `${row * this.height}px`;
      element.style.height = `${this.height}px`;
      rows.push(element);
    }
    this.space.replaceChildren(...rows);
  }
}

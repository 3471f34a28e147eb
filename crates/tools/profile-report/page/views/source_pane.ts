import { el } from "../dom.ts";
import { shortPath } from "../format.ts";
import type { Code, Source } from "../model/code.ts";
import type { Heat } from "../model/heat.ts";
import type { Session } from "../session.ts";
import { Highlighter } from "../syntax/highlighter.ts";
import { languageOf } from "../syntax/languages.ts";
import { paint } from "../syntax/paint.ts";
import type { CodePosition } from "./code_position.ts";
import { heatCells, heatStyle } from "./heat_cells.ts";
import { Rows } from "./rows.ts";

/** A source file, with the samples of its lines. */
export class SourcePane {
  readonly element: HTMLElement;
  private readonly rows = new Rows(20, "Source");
  private readonly head = el("div", { class: "pane-head" });
  /** The file that is read. */
  private text: { file: string; source: Source | null; colors: Highlighter | null } | null = null;

  constructor(
    private readonly session: Session,
    private readonly position: CodePosition,
  ) {
    this.element = el("section", { class: "pane source" }, this.head, this.rows.element);
  }

  draw(code: Code, files: string[], ofLines: Map<string, Map<number, Heat>>) {
    const { profile, counts, state } = this.session;
    const { file, line } = this.position;
    const { source, colors } = this.read(code, file);
    this.drawHead(files, source);
    const lines = ofLines.get(file) ?? new Map<number, Heat>();
    // Without the text, the lines that have samples are shown by their numbers.
    const numbers = source ? source.lines.map((_, at) => at + 1) : [...lines.keys()].sort((a, b) => a - b);
    if (numbers.length === 0) {
      const why = file ? "No lines are known." : "The function has no known source.";
      this.rows.set(1, () => el("div", { class: "note" }, why));
      return;
    }
    this.rows.set(numbers.length, (row) => {
      const number = numbers[row];
      const heat = lines.get(number);
      const tokens = colors?.line(row) ?? [];
      return el(
        "div",
        { class: `source-line ${number === line ? "selected" : ""}`, "data-line": number, style: heatStyle(heat, counts.all), click: () => this.position.toggle(number) },
        ...heatCells(heat, counts.all),
        el("span", { class: "line-number" }, String(number)),
        el("span", { class: "text" }, ...(source ? paint(source.lines[row], tokens) : ["(text not found)"])),
      );
    });
    const hottest = [...lines.entries()].sort((a, b) => b[1].own - a[1].own || b[1].total - a[1].total)[0]?.[0];
    const at = numbers.indexOf(line || hottest || profile.function.line[state.fn]);
    if (at >= 0) this.rows.reveal(at, line === 0);
  }

  /** The text of a file, and its colours. The last one is kept. */
  private read(code: Code, file: string) {
    if (this.text?.file === file) return this.text;
    const source = code.source(file);
    const language = source && languageOf(file);
    const redraw = () => this.text?.file === file && this.rows.redraw();
    this.text = { file, source, colors: language && new Highlighter(language, source.lines, redraw) };
    return this.text;
  }

  private drawHead(files: string[], source: Source | null) {
    const { file } = this.position;
    const select = el("select", { title: "Files", change: (event: Event) => this.position.show((event.target as HTMLSelectElement).value) });
    for (const each of files) select.append(el("option", { value: each, selected: each === file }, shortPath(each)));
    const note = source?.isNewer ? "The file was changed after the recording: its lines may be others." : source ? `SHA-256 ${source.hash.slice(0, 12)}` : "";
    this.head.replaceChildren(
      el("span", {}, "Source"),
      files.length > 1 ? select : el("span", { class: "muted path", title: file }, shortPath(file)),
      el("span", { class: source?.isNewer ? "warning" : "muted", title: source?.hash ?? "" }, note),
    );
  }
}

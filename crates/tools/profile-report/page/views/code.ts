import { el } from "../dom.ts";
import { count, percent } from "../format.ts";
import type { Code } from "../model/code.ts";
import { codesWithFunction } from "../model/codes_with_function.ts";
import { heatOfCodes, heatOfLines, type Heat } from "../model/heat.ts";
import type { Session } from "../session.ts";
import { AssemblyPane } from "./assembly_pane.ts";
import { CodePosition } from "./code_position.ts";
import { SourcePane } from "./source_pane.ts";

/** Source and assembly of a function side by side, with their samples. */
export class CodeView {
  private readonly position = new CodePosition(() => void this.draw());
  private readonly source: SourcePane;
  private readonly assembly: AssemblyPane;
  private readonly title = el("div", { class: "code-title" });
  private drawn = "";

  constructor(
    private readonly session: Session,
    private readonly element: HTMLElement,
    private readonly code: () => Promise<Code>,
  ) {
    this.source = new SourcePane(session, this.position);
    this.assembly = new AssemblyPane(session, this.position);
    element.append(this.title, el("div", { class: "panes" }, this.source.element, this.assembly.element));
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
    const codes = codesWithFunction(profile, id);
    const chosen = state.code >= 0 ? state.code : [...codes].sort((a, b) => heat[b].own - heat[a].own || heat[b].total - heat[a].total)[0] ?? -1;
    this.drawTitle(id, codes, chosen, heat);

    const fileOf = (each: number) => code.fileOf(profile, each);
    const ofLines = heatOfLines(profile, counts, id, state.code, fileOf);
    const files = [...ofLines.keys()].filter(Boolean);
    const own = fileOf(id);
    if (own && !files.includes(own)) files.unshift(own);
    const subject = `${id}/${chosen}`;
    const { position } = this;
    if (this.drawn !== subject) {
      this.drawn = subject;
      position.file = own || files[0] || "";
      position.line = 0;
    } else if (!files.includes(position.file)) position.file = own || files[0] || "";
    this.source.draw(code, files, ofLines);
    this.assembly.draw(code, chosen);
  }

  private drawTitle(id: number, codes: number[], chosen: number, heat: Heat[]) {
    const { profile, counts } = this.session;
    const { own, total } = this.session.functionCounts(id);
    const select = el("select", { title: "Which compilation", change: (event: Event) => this.session.update({ code: Number((event.target as HTMLSelectElement).value) }) });
    for (const code of codes) {
      const tier = profile.strings[profile.code.tier[code]];
      const generation = profile.code.generation[code];
      const inlined = profile.code.function[code] === id ? "" : `in ${profile.distinctName(profile.code.function[code])}`;
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
}

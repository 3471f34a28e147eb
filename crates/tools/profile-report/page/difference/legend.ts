import { el } from "../dom.ts";
import { STEPS, type Comparison } from "./comparison.ts";
import { unit } from "./describe.ts";

/** What the colours mean. */
export function drawLegend(comparison: Comparison, element: HTMLElement) {
  const levels = STEPS.map((_, at) => at + 1).concat(STEPS.length + 1);
  const swatch = (name: string, title: string) => el("span", { class: "swatch", title, style: `background:var(--${name})` });
  const title = (level: number, word: string) => {
    const from = level > 1 ? `above ${STEPS[level - 2]}` : "";
    const to = level <= STEPS.length ? `up to ${STEPS[level - 1]}` : "";
    return `${[from, to].filter(Boolean).join(", ")} ${unit(comparison)} ${word}`;
  };
  const scale = (word: "less" | "more", order: number[]) => order.map((level) => swatch(`${word}-${level}`, title(level, word)));
  element.replaceChildren(
    el("span", { class: "legend" }, "less ", ...scale("less", [...levels].reverse())),
    el("span", { class: "legend" }, swatch("noise", "Differences like these are likely if nothing changed"), "may be chance"),
    el("span", { class: "legend" }, ...scale("more", levels), "more"),
    el("span", { class: "legend muted" }, `steps: ${STEPS.join(", ")} ${unit(comparison)}`),
  );
}

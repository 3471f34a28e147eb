import { byId, el } from "../dom.ts";

/** Shows lines of text near the pointer. */
export function showTooltip(x: number, y: number, lines: string[]) {
  const tooltip = byId("tooltip");
  tooltip.replaceChildren(...lines.filter(Boolean).map((line) => el("div", {}, line)));
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  tooltip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tooltip.style.top = `${y + 18 + height < innerHeight ? y + 18 : Math.max(4, y - height - 10)}px`;
}

export function hideTooltip() {
  byId("tooltip").hidden = true;
}

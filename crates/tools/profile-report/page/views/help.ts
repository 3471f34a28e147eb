import { byId, el } from "../dom.ts";

/** Shows the keys and what they do, or hides them. */
export function toggleHelp(keys: readonly [string, string][], hint: string) {
  const help = byId<HTMLDialogElement>("help");
  if (help.childElementCount === 0) {
    help.append(
      el("h2", {}, "Keys"),
      el("dl", {}, ...keys.flatMap(([key, what]) => [el("dt", {}, key), el("dd", {}, what)])),
      el("p", {}, hint),
      el("button", { class: "small", click: () => help.close() }, "Close"),
    );
  }
  if (help.open) help.close();
  else help.showModal();
}

/** Calls the actions of keys, except while a text is typed. An action that answers false leaves the key to the browser. */
export function listenForKeys(actions: Record<string, () => unknown>, query: HTMLInputElement, clear: () => void) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement;
    if (target === query) {
      if (event.key === "Escape" || event.key === "Enter") {
        if (event.key === "Escape") clear();
        query.blur();
        event.preventDefault();
      }
      return;
    }
    if (target.closest("dialog, select")) return;
    if (event.key === "Enter" && target.closest("button")) return;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
    if (action && action() !== false) event.preventDefault();
  });
}

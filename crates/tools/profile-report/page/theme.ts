/** Dark, light, or as the system has it: the last is how the page starts. */
export function nextTheme() {
  const root = document.documentElement;
  const now = root.dataset.theme;
  const systemIsDark = matchMedia("(prefers-color-scheme: dark)").matches;
  if (now === undefined) root.dataset.theme = systemIsDark ? "light" : "dark";
  else delete root.dataset.theme;
}

/** Whether a text matches what is searched for: a part of it, in any case; or `/a regular expression/`. */
export function matcher(query: string): (text: string) => boolean {
  const pattern = /^\/(.+)\/$/.exec(query)?.[1];
  if (pattern !== undefined) {
    try {
      const expression = new RegExp(pattern, "i");
      return (text) => expression.test(text);
    } catch {
      // Not a regular expression yet: it is being typed.
    }
  }
  const part = query.toLowerCase();
  return (text) => text.toLowerCase().includes(part);
}

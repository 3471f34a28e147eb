/** The state of a page: what is looked at. The address of the page is a link to it. */
export abstract class Store<State extends object> {
  private readonly listeners: ((changed: ReadonlySet<keyof State>) => void)[] = [];

  protected constructor(public state: State) {
    addEventListener("hashchange", () => this.update(this.read(location.hash)));
  }

  /** The state that the fragment of a link describes. */
  protected abstract read(fragment: string): State;
  /** The fragment of a link to this state: empty, or beginning with `#`. */
  protected abstract write(): string;
  /** Sees to what follows from the state, before listeners look at it. */
  protected abstract derive(changed: ReadonlySet<keyof State>): void;

  listen(listener: (changed: ReadonlySet<keyof State>) => void) {
    this.listeners.push(listener);
  }

  update(change: Partial<State>) {
    const before = this.state;
    const changed = new Set<keyof State>();
    for (const key of Object.keys(change) as (keyof State)[]) if (!equal(before[key], change[key])) changed.add(key);
    if (changed.size === 0) return;
    this.state = { ...before, ...change };
    this.derive(changed);
    history.replaceState(null, "", this.write() || location.pathname);
    for (const listener of this.listeners) listener(changed);
  }
}

function equal(a: unknown, b: unknown): boolean {
  if (a instanceof Set && b instanceof Set) return a.size === b.size && [...a].every((each) => b.has(each));
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, at) => each === b[at]);
  return a === b;
}

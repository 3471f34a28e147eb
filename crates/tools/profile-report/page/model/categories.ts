import type { Profile } from "./profile.ts";

/** What is shown in one colour: a kind of function and, where there are several, the tier of the compiler. */
export interface Category {
  kind: string;
  tier: string;
  label: string;
  /** Number of samples in all. */
  samples: number;
  /** The name of its colour in the style sheet. */
  color: string;
}

export class Categories {
  readonly list: Category[] = [];
  readonly ofFrame: Int32Array;

  constructor(profile: Profile) {
    const numbers = new Map<string, number>();
    const frames = profile.frame.function.length;
    this.ofFrame = new Int32Array(frames);
    for (let frame = 0; frame < frames; frame++) {
      const kind = profile.functionKind(profile.frame.function[frame]);
      const code = profile.frame.code[frame];
      const hasTier = code >= 0 && (kind === "jitted" || kind === "interpreted");
      const tier = hasTier ? profile.strings[profile.code.tier[code]] : "";
      const key = `${kind}\n${tier}`;
      let number = numbers.get(key);
      if (number === undefined) {
        number = this.list.length;
        numbers.set(key, number);
        this.list.push({ kind, tier, label: tier === "" ? kind : `${kind}: ${tier}`, samples: 0, color: "" });
      }
      this.ofFrame[frame] = number;
    }
    const { sample, stack } = profile;
    for (let row = 0; row < profile.sampleCount; row++) {
      this.list[this.ofFrame[stack.frame[sample.stack[row]]]].samples++;
    }
    // Each tier has a colour of its own, as long as there are some.
    let jitted = 0;
    for (const each of [...this.list].sort((a, b) => b.samples - a.samples)) {
      each.color = each.kind === "jitted" ? `--jitted-${1 + (jitted++ % 6)}` : `--${each.kind.replaceAll(" ", "-")}`;
    }
  }
}

// Prints what the page colours in files: for each file a JSON list of [line, from, to, kind].
import { languageOf } from "../../../page/syntax/languages.ts";
import { startOf, tokensOf } from "../../../page/syntax/tokens.ts";

declare const process: { argv: string[]; stdout: { write(text: string): void } };
declare const require: (name: string) => { readFileSync(file: string, encoding: string): string };

for (const file of process.argv.slice(2)) {
  const language = languageOf(file);
  const tokens: [number, number, number, string][] = [];
  let open = language && startOf(language);
  require("fs")
    .readFileSync(file, "utf8")
    .split("\n")
    .forEach((text, line) => (open = language && tokensOf(language, text, open, ({ kind, from, to }) => tokens.push([line, from, to, kind]))));
  process.stdout.write(JSON.stringify(tokens) + "\n");
}

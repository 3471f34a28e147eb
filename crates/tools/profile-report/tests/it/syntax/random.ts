// Reads random texts in all languages: parts are in order and within their line, whatever the text is.
import { languageOf } from "../../../page/syntax/languages.ts";
import { startOf, tokensOf } from "../../../page/syntax/tokens.ts";

declare const process: { stdout: { write(text: string): void } };

const EXTENSIONS = "c cc cs ex erl go java js kt lua php py raku rb rs scala scribe swift".split(" ");
const PIECES = [
  ..."/ // /* */ \" ' ` \"\"\" ''' \\ \\\\ ${ #{ {$ { } ( ) [ ] ]] [[ --[[ --[==[ ]==] # #[ % $ $\" @\" r# r#\" \"# R\"( R\"x( )\" )x\" <<<A A <?php <? ?> . .. 1 .5 1e- 0x'f 16#ff => x é 😀 return type".split(" "),
  " ",
  "\t",
  "\u0000",
  "\ud800",
  "\udc00",
  "</script>",
];
let state = 1;
const random = (below: number) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};

let count = 0;
for (const extension of EXTENSIONS) {
  const language = languageOf(`a.${extension}`)!;
  const read = (lines: string[]) => {
    let open = startOf(language);
    for (const text of lines) {
      let last = 0;
      open = tokensOf(language, text, open, ({ from, to }) => {
        if (from < last || to <= from || to > text.length) throw new Error(`${extension}: ${from} to ${to} behind ${last} in ${JSON.stringify(text)}`);
        last = to;
        count++;
      });
    }
  };
  for (let round = 0; round < 300; round++) read(Array.from({ length: 8 }, () => Array.from({ length: random(20) }, () => PIECES[random(PIECES.length)]).join("")));
  // A line of each piece alone, as long as lines are read: quadratic time would be seen as a hang.
  for (const piece of PIECES) read([piece.repeat(20_000 / piece.length), piece.repeat(20_000 / piece.length)]);
}
process.stdout.write(`${count}\n`);

// Renders text with the package marked, whose module is the argument: an ES module with a source map.
import { pathToFileURL } from 'node:url';

const { marked } = await import(pathToFileURL(process.argv[2]).href);
const text = `# Title

Some *text* with \`code\`, [links](https://example.org) and **more**.

- one
- two

| a | b |
|---|---|
| 1 | 2 |

`.repeat(40);
let length = 0;
for (let round = 0; round < 600; round++) length += marked.parse(text).length;
console.log(length);

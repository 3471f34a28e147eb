// The original positions of positions LINE:COLUMN on standard input, by the source map that is the argument, as node's own reader finds them.
const { SourceMap } = require('node:module');
const fs = require('node:fs');

const map = new SourceMap(JSON.parse(fs.readFileSync(process.argv[2], 'utf8')));
for (const position of fs.readFileSync(0, 'utf8').trim().split('\n')) {
  const [line, column] = position.split(':').map(Number);
  const { generatedLine, originalSource, originalLine } = map.findEntry(line - 1, column - 1);
  const found = generatedLine === line - 1 && originalSource !== undefined;
  console.log(found ? `${originalSource.replace(/.*\//, '')}:${originalLine + 1}` : '-');
}

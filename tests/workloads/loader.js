// Runs the script that is the first argument under the name that is the second one, as loaders do that compile TypeScript in memory.
const fs = require('node:fs');
const vm = require('node:vm');

const [, , compiled, name] = process.argv;
new vm.Script(fs.readFileSync(compiled, 'utf8'), { filename: name }).runInThisContext();

// Prints comments, strings, keywords and numbers of scripts, as TypeScript's parser has them.
const [typescript, ...files] = process.argv.slice(2);
const ts = require(typescript);
const fs = require("fs");

for (const file of files) {
  const text = fs.readFileSync(file, "utf8");
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const tokens = [];
  const add = (from, to, kind) => {
    let line = starts.length - 1;
    for (let [low, high] = [0, starts.length]; low < high; ) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= from) (line = middle), (low = middle + 1);
      else high = middle;
    }
    for (let at = from; at < to; line++) {
      const end = Math.min(to, line + 1 < starts.length ? starts[line + 1] - 1 : text.length);
      if (end > at) tokens.push([line, at - starts[line], end - starts[line], kind]);
      at = starts[line + 1] ?? text.length;
    }
  };
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const { SyntaxKind } = ts;
  const seen = new Set();
  const comments = (position) => {
    for (const list of [ts.getLeadingCommentRanges(text, position), ts.getTrailingCommentRanges(text, position)])
      for (const { pos, end } of list ?? [])
        if (!seen.has(pos)) {
          seen.add(pos);
          add(pos, end, "comment");
        }
  };
  const strings = [SyntaxKind.StringLiteral, SyntaxKind.NoSubstitutionTemplateLiteral, SyntaxKind.TemplateHead, SyntaxKind.TemplateMiddle, SyntaxKind.TemplateTail, SyntaxKind.RegularExpressionLiteral];
  const visit = (node) => {
    const children = node.getChildren(source).filter((child) => child.kind < SyntaxKind.FirstJSDocNode || child.kind > SyntaxKind.LastJSDocNode);
    if (children.length > 0) return children.forEach(visit);
    // A template has comments behind its parts only where code follows.
    if (node.kind !== SyntaxKind.TemplateMiddle && node.kind !== SyntaxKind.TemplateTail) comments(node.pos);
    const [from, to] = [node.getStart(source), node.end];
    if (strings.includes(node.kind)) add(from, to, "string");
    else if (node.kind === SyntaxKind.NumericLiteral || node.kind === SyntaxKind.BigIntLiteral) add(from, to, "number");
  };
  visit(source);
  tokens.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  process.stdout.write(JSON.stringify(tokens) + "\n");
}

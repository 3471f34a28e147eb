"""Prints comments, strings and numbers of Python files, as Python's own tokenizer has them."""

import io
import json
import sys
import tokenize

KINDS = {tokenize.COMMENT: "comment", tokenize.STRING: "string", tokenize.NUMBER: "number"}

for file in sys.argv[1:]:
    text = open(file, encoding="utf-8").read()
    lines = text.split("\n")
    tokens = []
    formatted = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        # Since Python 3.12, f-strings are several tokens.
        if tokenize.tok_name[token.type] == "FSTRING_START":
            formatted.append(token)
            continue
        if tokenize.tok_name[token.type] == "FSTRING_END":
            begin = formatted.pop()
            token = token._replace(type=tokenize.STRING, start=begin.start, string=begin.string)
        if formatted:
            continue
        kind = KINDS.get(token.type)
        if kind is None:
            continue
        (first, start), (last, end) = token.start, token.end
        if kind == "string":
            # A prefix has no colour.
            start += len(token.string) - len(token.string.lstrip("rRbBfFuU"))
        for line in range(first - 1, last):
            begins = start if line == first - 1 else 0
            ends = end if line == last - 1 else len(lines[line])
            if ends > begins:
                tokens.append([line, begins, ends, kind])
    print(json.dumps(tokens))

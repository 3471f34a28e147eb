<?php
// Prints comments, strings and numbers of PHP files, as PHP's own tokenizer has them. Of an expression within a string, the marks around it are of the
// string: `{$` and `}`.
foreach (array_slice($argv, 1) as $file) {
    $tokens = [];
    $line = 0;
    $column = 0;
    $quoted = $heredoc = $inside = $begins = false;
    foreach (PhpToken::tokenize(file_get_contents($file)) as $token) {
        $kind = match (true) {
            $token->is([T_COMMENT, T_DOC_COMMENT]) => 'comment',
            !$inside && ($quoted || $heredoc) || $token->is([T_CONSTANT_ENCAPSED_STRING, T_START_HEREDOC, '"']) => 'string',
            $token->is([T_LNUMBER, T_DNUMBER]) => 'number',
            default => null,
        };
        if ($begins) $tokens[] = [$line, $column, $column + 1, 'string'];
        $begins = $token->is(T_CURLY_OPEN);
        if ($begins) $inside = true;
        if ($inside && $token->is('}')) [$inside, $kind] = [false, 'string'];
        if ($token->is('"')) $quoted = !$quoted;
        if ($token->is(T_START_HEREDOC)) $heredoc = true;
        if ($token->is(T_END_HEREDOC)) $heredoc = false;
        foreach (explode("\n", $token->text) as $number => $part) {
            if ($number > 0) [$line, $column] = [$line + 1, 0];
            if ($kind !== null && $part !== '') $tokens[] = [$line, $column, $column + strlen($part), $kind];
            $column += strlen($part);
        }
    }
    echo json_encode($tokens), "\n";
}

%% A module with "all" of it.
-module(sample).
-export([run/1]).

run(N) when N > 16#ff ->
    Quote = $", Escaped = $\", Space = $\s, Percent = $%,
    Text = "a % in a string, \"escaped\"
  on two lines",
    'an atom with "quotes"' = atom(N), % a comment
    Float = 1.5e-3 + 2.0,
    [Quote, Escaped, Space, Percent, Text, Float | 10].

atom(1) -> 'an atom with "quotes"';
atom(_) -> 'it\'s'.

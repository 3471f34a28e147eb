%% Works until it is killed, half of the time in one function, and the rest in two others. Says "steady" when it has begun.
-module(steady).
-export([main/0]).

heavy(N) when N < 2 -> N;
heavy(N) -> heavy(N - 1) + heavy(N - 2).

middle(N) when N < 2 -> N;
middle(N) -> middle(N - 1) + middle(N - 2).

light(N) when N < 2 -> N;
light(N) -> light(N - 1) + light(N - 2).

round() ->
    heavy(18), heavy(18), heavy(18), middle(18), middle(18), light(18).

main() ->
    round(),
    io:format("steady~n"),
    forever().

forever() ->
    round(),
    forever().

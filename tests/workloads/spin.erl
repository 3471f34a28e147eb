%% About a second of work in several functions.
-module(spin).
-export([main/0]).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

sum([X | Rest], Total) -> sum(Rest, Total + X);
sum([], Total) -> Total.

sorted(N) ->
    sum(lists:sort(fun(A, B) -> A >= B end, lists:seq(1, N)), 0).

rounds(End, Total) ->
    case erlang:monotonic_time(millisecond) < End of
        true -> rounds(End, Total + fib(20) + sorted(3000));
        false -> Total
    end.

main() ->
    io:format("~p~n", [rounds(erlang:monotonic_time(millisecond) + 1000, 0)]).

#!/usr/bin/env escript
%% Prints comments, strings and numbers of Erlang files, as Erlang's own scanner has them.
-mode(compile).

main(Files) -> lists:foreach(fun file/1, Files).

file(Name) ->
    {ok, Bytes} = file:read_file(Name),
    Text = binary_to_list(Bytes),
    {ok, Tokens, _} = erl_scan:string(Text, {1, 1}, [return, text]),
    Rows = lists:flatmap(fun token/1, Tokens),
    io:format("[~s]~n", [lists:join(",", Rows)]).

token(Token) ->
    {Line, Column} = erl_scan:location(Token),
    Text = erl_scan:text(Token),
    case kind(erl_scan:category(Token), Text) of
        none -> [];
        Kind -> rows(string:split(Text, "\n", all), Line - 1, Column - 1, Kind)
    end.

kind(comment, _) -> "comment";
kind(string, _) -> "string";
kind(char, _) -> "string";
kind(atom, [$' | _]) -> "string";
kind(integer, _) -> "number";
kind(float, _) -> "number";
kind(_, _) -> none.

rows([], _, _, _) -> [];
rows([Part | Parts], Line, Column, Kind) ->
    Row = io_lib:format("[~b,~b,~b,\"~s\"]", [Line, Column, Column + length(Part), Kind]),
    [Row | rows(Parts, Line + 1, 0, Kind)].

# Elixir's formatter at work on its own input: this file, many times. With a file as its argument, it writes the stacks of the worker there, which
# another process asks for: the innermost function first, one stack a line.
defmodule Stacks do
  def run(nil, work), do: work.()

  def run(path, work) do
    :erlang.system_flag(:backtrace_depth, 512)
    worker = self()
    sampler = spawn_link(fn -> loop(worker, []) end)
    work.()
    send(sampler, {:stop, self()})

    receive do
      {:stacks, stacks} -> File.write!(path, Enum.map(stacks, &line/1))
    end
  end

  defp loop(worker, stacks) do
    receive do
      {:stop, to} -> send(to, {:stacks, stacks})
    after
      2 ->
        {:current_stacktrace, stack} = Process.info(worker, :current_stacktrace)
        loop(worker, [stack | stacks])
    end
  end

  defp line(stack) do
    frames = for {module, name, arity, _} <- stack, do: :io_lib.format("~p:~p/~b", [module, name, arity])
    [Enum.intersperse(frames, "\t"), "\n"]
  end
end

text = String.duplicate(File.read!(__ENV__.file), 40)

Stacks.run(List.first(System.argv()), fn ->
  for _ <- 1..30, do: Code.format_string!(text)
end)

-- Loops with branches, until SECONDS of processor time have passed. With `list`, prints what LuaJIT says of each trace (`trace NUMBER FILE:LINE`) and `ready`, and
-- goes on. With `flush`, throws all traces away from time to time.
local seconds, mode = tonumber(arg[1]), arg[2]
local info = require("jit.util").funcinfo
local starts, traces = {}, {}

if mode == "list" then
  jit.attach(function(what, number, func, pc)
    if what == "start" then
      starts[number] = info(func, pc).loc
    elseif what == "stop" then
      traces[number] = starts[number]
    end
  end, "trace")
end

local function collatz(n)
  local steps = 0
  while n > 1 do
    if n % 2 == 0 then
      n = n / 2
    else
      n = 3 * n + 1
    end
    steps = steps + 1
  end
  return steps
end

local function round()
  local longest = 0
  for n = 1, 20000 do
    local steps = collatz(n)
    if steps > longest then
      longest = steps
    end
  end
  return longest
end

round()
if mode == "list" then
  jit.attach(function() end)
  for number, place in pairs(traces) do
    print("trace " .. number .. " " .. place)
  end
  print("ready")
  io.stdout:flush()
end
local rounds = 0
while os.clock() < seconds do
  round()
  rounds = rounds + 1
  if mode == "flush" and rounds % 20 == 0 then
    jit.flush()
  end
end

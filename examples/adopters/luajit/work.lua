-- Two loops, each of which LuaJIT compiles into a trace; for as many seconds as the argument says.

local function mix(n)
  local hash = 17
  for i = 1, n do
    hash = (hash * 31 + i) % 4294967296
    hash = hash - i % 7
  end
  return hash
end

local function fill(n)
  local numbers = {}
  for i = 1, n do
    numbers[i] = i * 2
  end
  return #numbers
end

local finish = os.clock() + tonumber(arg[1])
local sum = 0
while os.clock() < finish do
  sum = sum + mix(100000) + fill(20000)
end
print(sum > 0)

local function inner(n)
  local sum = 0
  for i = 1, n do sum = (sum * 31 + i) % 1000003 end
  return sum
end
local total = 0
for round = 1, 3000 do total = total + inner(20000) end
print(total)

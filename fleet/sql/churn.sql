-- Tier churn: functions that one tier compiles again and again, at least twice a host on average.
-- A function's number stands for its name and file, and hosts are counted as rows: sets of texts would take much memory.
WITH names AS (
    SELECT DISTINCT function_key, name, file FROM functions
),
ids AS (
    SELECT name, file, MIN(function_key) AS id FROM names GROUP BY name, file
),
known AS (
    SELECT n.function_key, i.id
    FROM ids AS i
    JOIN names AS n ON n.name = i.name AND n.file = i.file
),
on_hosts AS (
    SELECT k.id, c.tier, c.host, SUM(c.compilations) AS compilations
    FROM known AS k
    JOIN codes AS c ON c.function_key = k.function_key
    GROUP BY k.id, c.tier, c.host
),
churned AS (
    SELECT id, tier, COUNT(*) AS hosts, SUM(compilations) AS compiled
    FROM on_hosts
    GROUP BY id, tier
    HAVING SUM(compilations) >= 2 * COUNT(*)
),
different AS (
    SELECT DISTINCT k.id, c.tier, c.code_key
    FROM known AS k
    JOIN codes AS c ON c.function_key = k.function_key
),
counted AS (
    SELECT h.id, h.tier, h.hosts, h.compiled, COUNT(*) AS different_codes
    FROM churned AS h
    JOIN different AS d ON d.id = h.id AND d.tier = h.tier
    GROUP BY h.id, h.tier, h.hosts, h.compiled
)
SELECT i.name, i.file, c.tier, c.hosts, c.compiled, c.different_codes
FROM counted AS c
JOIN ids AS i ON i.id = c.id
ORDER BY c.compiled DESC, i.name, i.file, c.tier
LIMIT 50

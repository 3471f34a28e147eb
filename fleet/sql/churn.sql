-- Tier churn: functions that one tier compiles again and again, at least twice a host on average.
SELECT
    f.name,
    f.file,
    c.tier,
    COUNT(DISTINCT c.host) AS hosts,
    SUM(c.compilations) AS compiled,
    COUNT(DISTINCT c.code_key) AS different_codes
FROM codes AS c
JOIN (SELECT DISTINCT function_key, name, file FROM functions) AS f
    ON f.function_key = c.function_key
GROUP BY f.name, f.file, c.tier
HAVING SUM(c.compilations) >= 2 * COUNT(DISTINCT c.host)
ORDER BY compiled DESC, f.name, f.file, c.tier
LIMIT 50

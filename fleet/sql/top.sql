-- The functions of runtimes that cost most, by tier and generation, and on how many hosts.
SELECT
    f.name,
    f.file,
    s.tier,
    s.generation,
    COUNT(DISTINCT s.host) AS hosts,
    SUM(s.sample_count) AS own_samples
FROM samples AS s
JOIN (SELECT DISTINCT function_key, name, file, origin FROM functions) AS f
    ON f.function_key = s.function_key
WHERE f.origin = 'runtime'
GROUP BY f.name, f.file, s.tier, s.generation
ORDER BY own_samples DESC, f.name, f.file, s.tier, s.generation
LIMIT 50

-- The functions of runtimes that cost most, by tier and generation, and on how many hosts.
-- Hosts are counted for the answer's rows alone: that takes a second reading, and much less memory. The smaller side of each join is named
-- first, as engines without statistics keep that one in memory.
WITH names AS (
    SELECT DISTINCT function_key, name, file FROM functions WHERE origin = 'runtime'
),
counted AS (
    SELECT function_key, tier, generation, SUM(sample_count) AS own
    FROM samples
    GROUP BY function_key, tier, generation
),
costs AS (
    SELECT f.name, f.file, s.tier, s.generation, SUM(s.own) AS own_samples
    FROM names AS f
    JOIN counted AS s ON s.function_key = f.function_key
    GROUP BY f.name, f.file, s.tier, s.generation
    ORDER BY own_samples DESC, f.name, f.file, s.tier, s.generation
    LIMIT 50
),
keys AS (
    SELECT f.function_key, c.name, c.file, c.tier, c.generation, c.own_samples
    FROM costs AS c
    JOIN names AS f ON f.name = c.name AND f.file = c.file
)
SELECT
    k.name,
    k.file,
    k.tier,
    k.generation,
    COUNT(DISTINCT s.host) AS hosts,
    k.own_samples
FROM keys AS k
JOIN samples AS s ON s.function_key = k.function_key AND s.tier = k.tier AND s.generation = k.generation
GROUP BY k.name, k.file, k.tier, k.generation, k.own_samples
ORDER BY k.own_samples DESC, k.name, k.file, k.tier, k.generation
LIMIT 50

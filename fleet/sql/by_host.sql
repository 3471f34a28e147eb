-- How many samples each host has in each function in two deployments: what tells by how much hosts differ by themselves. The first lines name the service and the versions.
WITH deployments AS (
    SELECT 'shop' AS service, '1.0' AS version_before, '1.1' AS version_after
),
lineages AS (
    SELECT DISTINCT function_key, lineage_key FROM functions
)
SELECT
    l.lineage_key AS lineage_key,
    s.host AS host,
    CASE WHEN s.version = d.version_after THEN 1 ELSE 0 END AS is_after,
    SUM(s.sample_count) AS own_samples
FROM deployments AS d
JOIN samples AS s ON s.service = d.service
JOIN lineages AS l ON l.function_key = s.function_key
WHERE s.version = d.version_before OR s.version = d.version_after
GROUP BY l.lineage_key, s.host, s.version, d.version_after
ORDER BY lineage_key, host, is_after

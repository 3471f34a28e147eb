-- The functions whose share of a service's samples grew most from one deployment to another. The first lines name the service and the versions.
WITH deployments AS (
    SELECT 'shop' AS service, '1.0' AS version_before, '1.1' AS version_after
),
lineages AS (
    SELECT DISTINCT function_key, lineage_key FROM functions
),
names AS (
    SELECT lineage_key, MIN(name) AS name, MIN(file) AS file FROM functions GROUP BY lineage_key
),
counted AS (
    SELECT
        l.lineage_key AS lineage_key,
        SUM(CASE WHEN s.version = d.version_before THEN s.sample_count ELSE 0 END) AS own_before,
        SUM(CASE WHEN s.version = d.version_after THEN s.sample_count ELSE 0 END) AS own_after
    FROM deployments AS d
    JOIN samples AS s ON s.service = d.service
    JOIN lineages AS l ON l.function_key = s.function_key
    WHERE s.version = d.version_before OR s.version = d.version_after
    GROUP BY l.lineage_key
),
totals AS (
    SELECT SUM(own_before) AS all_before, SUM(own_after) AS all_after FROM counted
)
SELECT
    n.name AS name,
    n.file AS file,
    c.own_before AS own_before,
    c.own_after AS own_after,
    CAST(c.own_after AS DOUBLE) / NULLIF(t.all_after, 0) - CAST(c.own_before AS DOUBLE) / NULLIF(t.all_before, 0) AS share_change,
    c.lineage_key AS lineage_key
FROM counted AS c
CROSS JOIN totals AS t
JOIN names AS n ON n.lineage_key = c.lineage_key
ORDER BY share_change DESC, name, file
LIMIT 50

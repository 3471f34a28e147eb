-- Input of flame graphs: a line is a stack, outermost first, and its number of samples.
WITH frames AS (
    SELECT stack_key, POSEXPLODE(function_keys) AS (depth, function_key)
    FROM (SELECT DISTINCT stack_key, function_keys FROM stacks)
),
named AS (
    SELECT
        r.stack_key,
        ARRAY_JOIN(TRANSFORM(ARRAY_SORT(COLLECT_LIST(STRUCT(r.depth, REPLACE(f.name, ';', ':') AS name))), x -> x.name), ';') AS folded
    FROM frames AS r
    JOIN (SELECT DISTINCT function_key, name FROM functions) AS f ON f.function_key = r.function_key
    GROUP BY r.stack_key
)
SELECT n.folded AS folded, SUM(s.sample_count) AS stack_samples
FROM samples AS s
JOIN named AS n ON n.stack_key = s.stack_key
GROUP BY n.folded
ORDER BY folded

-- Input of flame graphs: a line is a stack, outermost first, and its number of samples.
WITH frames AS (
    SELECT stack_key, UNNEST(function_keys) AS function_key, GENERATE_SUBSCRIPTS(function_keys, 1) AS depth
    FROM (SELECT DISTINCT stack_key, function_keys FROM stacks)
),
named AS (
    SELECT r.stack_key, STRING_AGG(REPLACE(f.name, ';', ':'), ';' ORDER BY r.depth) AS folded
    FROM frames AS r
    JOIN (SELECT DISTINCT function_key, name FROM functions) AS f ON f.function_key = r.function_key
    GROUP BY r.stack_key
)
SELECT n.folded AS folded, SUM(s.sample_count) AS stack_samples
FROM samples AS s
JOIN named AS n ON n.stack_key = s.stack_key
GROUP BY n.folded
ORDER BY folded

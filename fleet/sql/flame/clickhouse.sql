-- Input of flame graphs: a line is a stack, outermost first, and its number of samples.
WITH frames AS (
    SELECT stack_key, function_key, depth
    FROM (SELECT DISTINCT stack_key, function_keys FROM stacks)
    ARRAY JOIN function_keys AS function_key, arrayEnumerate(function_keys) AS depth
),
named AS (
    SELECT
        r.stack_key AS stack_key,
        arrayStringConcat(arrayMap(x -> x.2, arraySort(groupArray((r.depth, replaceAll(f.name, ';', ':'))))), ';') AS folded
    FROM frames AS r
    JOIN (SELECT DISTINCT function_key, name FROM functions) AS f ON f.function_key = r.function_key
    GROUP BY r.stack_key
)
SELECT n.folded AS folded, SUM(s.sample_count) AS stack_samples
FROM samples AS s
JOIN named AS n ON n.stack_key = s.stack_key
GROUP BY n.folded
ORDER BY folded

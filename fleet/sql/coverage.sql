-- Coverage of naming: how many samples of each service end in code with a name, and in code of runtimes with a file.
SELECT
    s.service,
    SUM(s.sample_count) AS all_samples,
    SUM(CASE WHEN f.origin = 'unknown' THEN 0 ELSE s.sample_count END) AS named,
    SUM(CASE WHEN f.origin = 'runtime' THEN s.sample_count ELSE 0 END) AS in_runtime_code,
    SUM(CASE WHEN f.origin = 'runtime' AND f.file <> '' THEN s.sample_count ELSE 0 END) AS with_file,
    COUNT(DISTINCT s.host) AS hosts
FROM (SELECT DISTINCT function_key, origin, file FROM functions) AS f
JOIN samples AS s
    ON s.function_key = f.function_key
GROUP BY s.service
ORDER BY s.service

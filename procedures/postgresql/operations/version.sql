-- version: return the release that is installed, and its areas.
-- Arguments:   none
-- Returns:     version (such as 0.1.0; NULL before apply has ended), areas (their names in alphabetical order, separated by commas)
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT version FROM mq.version();
CREATE OR REPLACE FUNCTION mq.version(OUT version text, OUT areas text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    SELECT (array_agg(i.name ORDER BY i.applied_at DESC) FILTER (WHERE i.kind = 'release'))[1],
        string_agg(i.name, ',' ORDER BY i.name COLLATE "C") FILTER (WHERE i.kind = 'area') INTO version, areas
    FROM mq.installed AS i;
END
$$;

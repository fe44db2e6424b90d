-- installed_files: the installed files, and whether the object of each was changed since; for the runner.
-- Returns: name (of a file without .sql, of an area, or the release), kind (release, migration, area, procedure or grants),
--     sha256 (of the file's text), changed (1: the object is missing or was changed by hand), applied_at
CREATE OR REPLACE FUNCTION mq_internal.installed_files() RETURNS TABLE (
    name text, kind text, sha256 text, changed smallint, applied_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
BEGIN
    -- Others than procedures create no object of their name: there is nothing to compare. Indexes are for queue_health.
    RETURN QUERY
        SELECT i.name, i.kind, i.sha256,
            (i.kind = 'procedure' AND i.fingerprint IS DISTINCT FROM mq_internal.object_fingerprint(i.name))::integer::smallint,
            i.applied_at
        FROM mq.installed AS i
        WHERE i.kind <> 'index'
        ORDER BY i.name;
END
$$;

-- installed_files: the installed files, and whether the object of each was changed since; for the runner.
-- Returns: name (of a file without .sql, of an area, or the release), kind (release, migration, area, procedure or grants),
--     sha256 (of the file's text), changed (1: the object is missing or was changed by hand), applied_at
CREATE OR ALTER PROCEDURE mq_internal.installed_files
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: no locks of this read stay
    -- Others than procedures create no object of their name: there is nothing to compare. Indexes are for queue_health.
    SELECT i.name, i.kind, i.sha256,
        CAST(CASE
            WHEN i.kind <> 'procedure' THEN 0
            WHEN ISNULL(i.fingerprint, 0x) = ISNULL(mq_internal.object_fingerprint(i.name), 0x) THEN 0
            ELSE 1
        END AS smallint) AS changed,
        i.applied_at
    FROM mq.installed AS i
    WHERE i.kind <> 'index'
    ORDER BY i.name;
END;

-- installed_files: the installed files, and whether the object of each was changed since; for the runner.
-- Returns: name (of a file without .sql, of an area, or the release), kind (release, migration, area, procedure or grants),
--     sha256 (of the file's text), changed (1: the object is missing or was changed by hand), applied_at

CREATE OR ALTER PROCEDURE imq_installed_files
RETURNS (
    name mq_name, kind varchar(20) CHARACTER SET UTF8, sha256 varchar(64) CHARACTER SET UTF8, changed smallint,
    applied_at timestamp
)
AS
BEGIN
    -- Others than procedures create no object of their name: there is nothing to compare. Indexes are for queue_health.
    FOR
        SELECT i.name, i.kind, i.sha256,
            IIF(i.kind = 'procedure' AND i.fingerprint IS DISTINCT FROM imq_object_fingerprint(i.name), 1, 0), i.applied_at
        FROM mq_installed AS i
        WHERE i.kind <> 'index'
        ORDER BY i.name
        INTO name, kind, sha256, changed, applied_at
    DO
        SUSPEND;
END

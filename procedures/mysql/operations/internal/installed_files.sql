-- installed_files: the installed files, and whether the object of each was changed since; for the runner.
-- Returns: name (of a file without .sql, of an area, or the release), kind (release, migration, area, procedure or grants),
--     sha256 (of the file's text), changed (1: the object is missing or was changed by hand), applied_at

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_installed_files()
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_fingerprints longtext CHARACTER SET utf8mb4;
    CALL imq_object_fingerprint(v_fingerprints);
    -- Others than procedures create no object of their name: there is nothing to compare. Indexes are for queue_health.
    SELECT i.name, i.kind, i.sha256, i.kind = 'procedure' AND NOT i.fingerprint <=> f.fingerprint AS changed, i.applied_at
    FROM mq_installed AS i
    LEFT JOIN JSON_TABLE(v_fingerprints, '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
        fingerprint char(64) CHARACTER SET ascii PATH '$[1]')) AS f ON f.name = i.name
    WHERE i.kind <> 'index'
    ORDER BY i.name;
END

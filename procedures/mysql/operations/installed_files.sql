-- installed_files: which file of the package each object comes from, and whether the object is still as installed.
-- Arguments:   none
-- Returns:     name, kind (migration or procedure), sha256, changed (1: the object is missing or was changed by hand),
--              applied_at
-- Errors:      none
-- Transaction: reads only
-- Example:     CALL mq_installed_files();

DROP PROCEDURE IF EXISTS mq_installed_files;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_installed_files(
)
SQL SECURITY DEFINER
READS SQL DATA
BEGIN
    DECLARE v_fingerprints longtext CHARACTER SET utf8mb4;
    CALL mq_object_fingerprint(v_fingerprints);
    -- Migrations and grants.sql leave no object of their name: nothing to compare.
    SELECT i.name, i.kind, i.sha256, i.kind = 'procedure' AND NOT i.fingerprint <=> f.fingerprint AS changed, i.applied_at
    FROM mq_installed AS i
    LEFT JOIN JSON_TABLE(v_fingerprints, '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
        fingerprint char(64) CHARACTER SET ascii PATH '$[1]')) AS f ON f.name = i.name
    ORDER BY i.name;
END//

DELIMITER ;

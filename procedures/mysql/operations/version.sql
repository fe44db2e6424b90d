-- version: return the release that is installed, and its areas.
-- Arguments:   none
-- Returns:     version (such as 0.1.0; NULL before apply has ended), areas (their names in alphabetical order, separated by commas)
-- Errors:      none
-- Transaction: reads only
-- Example:     CALL mq_version();

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_version()
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    IF @@SESSION.group_concat_max_len < 1048576 THEN
        SET SESSION group_concat_max_len = 1048576;
    END IF;
    SELECT (SELECT name FROM mq_installed WHERE kind = 'release' ORDER BY applied_at DESC LIMIT 1) AS version,
        (SELECT GROUP_CONCAT(name ORDER BY name) FROM mq_installed WHERE kind = 'area') AS areas;
END

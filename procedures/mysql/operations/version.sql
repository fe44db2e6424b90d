-- version: return the release that is installed, and its areas.
-- Arguments:   none
-- Returns:     version (such as 0.1.0; NULL before apply has ended), areas (their names in alphabetical order, separated by commas)
-- Errors:      none
-- Transaction: reads only
-- Example:     CALL mq_version();

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_version()
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_areas longtext CHARACTER SET utf8mb4;
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_end boolean DEFAULT false;
    -- Not GROUP_CONCAT, whose result a setting of the session can cut.
    DECLARE areas CURSOR FOR SELECT name FROM mq_installed WHERE kind = 'area' ORDER BY name;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = true;
    OPEN areas;
    area: LOOP
        FETCH areas INTO v_name;
        IF v_end THEN
            LEAVE area;
        END IF;
        SET v_areas = CONCAT_WS(',', v_areas, v_name);
    END LOOP;
    CLOSE areas;
    SELECT (SELECT name FROM mq_installed WHERE kind = 'release' ORDER BY applied_at DESC LIMIT 1) AS version, v_areas AS areas;
END

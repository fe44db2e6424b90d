-- require_area: refuse a setting, or a claim that follows it, while the area of the same name is not installed.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_area(IN p_area varchar(200) CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_there tinyint;
    -- An area gets its hash when all its files are installed.
    SELECT EXISTS (SELECT * FROM mq_installed WHERE name = p_area AND kind = 'area' AND sha256 <> '') INTO v_there;
    IF NOT v_there THEN
        CALL imq_raise_error('area_missing',
            REPLACE('{}: the area {} is not installed here: `runner apply --areas {}` adds it', '{}', p_area));
    END IF;
END

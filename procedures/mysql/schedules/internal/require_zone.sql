-- require_zone: refuse a time zone that the server does not know.
-- Arguments:   p_zone (NULL passes and means UTC)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_zone(IN p_zone longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_ahead int;
    IF p_zone IS NOT NULL THEN
        CALL imq_require_name('time_zone', p_zone, 0);
        -- CONVERT_TZ also accepts offsets, and SYSTEM for the zone of the server's machine.
        IF p_zone NOT REGEXP '^[A-Za-z][-A-Za-z0-9_+/]*\\z' OR UPPER(p_zone) = 'SYSTEM' THEN
            CALL imq_raise_error('invalid_argument', CONCAT('time_zone: ', LEFT(p_zone, 40), ' is not the name of a time zone'));
        END IF;
        CALL imq_zone_minutes(p_zone, 1, v_ahead);
    END IF;
END

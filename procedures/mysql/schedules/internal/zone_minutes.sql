-- zone_minutes: the UTC offset of a time zone at a given time.
-- Arguments:   p_zone, p_minute (the time: minutes since 1970-01-01 00:00 UTC)
-- Returns:     p_ahead: the offset in minutes; negative west of Greenwich
--
-- The server's time zone tables, and on MariaDB its dates, end with the year 2037. A later year is replaced by a year
-- since 2010 with the same days of the week.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_zone_minutes(
    IN p_zone varchar(200) CHARACTER SET utf8mb4, IN p_minute bigint, OUT p_ahead int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_last int DEFAULT 2037;
    -- The server's dates begin one second after midnight.
    DECLARE v_at datetime DEFAULT CAST('1970-01-01' AS datetime) + INTERVAL GREATEST(p_minute, 1) MINUTE;
    DECLARE v_year int DEFAULT YEAR(v_at);
    DECLARE v_like int DEFAULT 2010;
    SET p_ahead = 0;
    IF CAST(UPPER(p_zone) AS binary) <> 'UTC' THEN
        IF v_year > c_last THEN
            WHILE DAYOFWEEK(MAKEDATE(v_like, 1)) <> DAYOFWEEK(MAKEDATE(v_year, 1))
                OR DAYOFYEAR(MAKEDATE(v_like + 1, 1) - INTERVAL 1 DAY) <> DAYOFYEAR(MAKEDATE(v_year + 1, 1) - INTERVAL 1 DAY)
            DO
                SET v_like = v_like + 1;
            END WHILE;
            SET v_at = v_at - INTERVAL v_year - v_like YEAR;
        END IF;
        SET p_ahead = FLOOR(TIMESTAMPDIFF(SECOND, v_at, CONVERT_TZ(v_at, '+00:00', p_zone)) / 60);
        IF p_ahead IS NULL THEN
            CALL imq_raise_error('invalid_argument', CONCAT('time_zone: this server does not know ', LEFT(p_zone, 40),
                '; load time zones with mysql_tzinfo_to_sql'));
        END IF;
    END IF;
END

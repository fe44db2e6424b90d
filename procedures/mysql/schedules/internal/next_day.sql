-- next_day: the first date from p_day on that a cron expression matches.
-- Arguments:   p_days, p_months, p_weekdays and p_both_days (of read_cron), p_day (days since 1970-01-01)
-- Returns:     p_found: days since 1970-01-01; NULL when no date in the next 50 years matches

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_day(
    IN p_days varchar(60) CHARACTER SET ascii, IN p_months varchar(60) CHARACTER SET ascii,
    IN p_weekdays varchar(60) CHARACTER SET ascii, IN p_both_days tinyint, IN p_day int, OUT p_found int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_date date DEFAULT CAST('1970-01-01' AS date) + INTERVAL p_day DAY;
    DECLARE v_end date DEFAULT v_date + INTERVAL 50 YEAR;
    DECLARE v_day, v_weekday tinyint;
    SET p_found = NULL;
    WHILE p_found IS NULL AND v_date < v_end DO
        IF SUBSTRING(p_months, MONTH(v_date) + 1, 1) = '0' THEN
            SET v_date = LAST_DAY(v_date) + INTERVAL 1 DAY;
        ELSE
            SET v_day = SUBSTRING(p_days, DAY(v_date) + 1, 1) = '1', v_weekday = SUBSTRING(p_weekdays, DAYOFWEEK(v_date), 1) = '1';
            IF v_day AND v_weekday OR (v_day OR v_weekday) AND NOT p_both_days THEN
                SET p_found = DATEDIFF(v_date, '1970-01-01');
            END IF;
            SET v_date = v_date + INTERVAL 1 DAY;
        END IF;
    END WHILE;
END

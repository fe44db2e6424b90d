-- read_cron_field: the values that one field of a cron expression matches.
-- Arguments:   p_name (of the field, for error texts), p_field (its text), p_low and p_high (its limits), p_names (three
--              letters per value, from the first value on; NULL: the field has no names)
-- Returns:     p_places: a text of p_high + 1 digits; the n-th is 1 if the value n - 1 matches, else 0

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_cron_field(
    IN p_name varchar(200) CHARACTER SET utf8mb4, IN p_field varchar(200) CHARACTER SET utf8mb4, IN p_low int,
    IN p_high int, IN p_names varchar(60) CHARACTER SET ascii, OUT p_places varchar(60) CHARACTER SET ascii
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_rest varchar(201) CHARACTER SET utf8mb4 DEFAULT CONCAT(UPPER(p_field), ',');
    DECLARE v_item, v_range varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_first, v_last, v_step, v_value int;
    SET p_places = REPEAT('0', p_high + 1);
    WHILE v_rest <> '' DO
        SET v_item = SUBSTRING_INDEX(v_rest, ',', 1), v_rest = SUBSTRING(v_rest, CHAR_LENGTH(v_item) + 2),
            v_range = SUBSTRING_INDEX(v_item, '/', 1), v_first = NULL, v_last = NULL, v_step = 1;
        -- Excludes letters that only a collation equates with these.
        IF v_item REGEXP '(?-i)^([*]|([0-9]{1,2}|[A-Z]{3})(-([0-9]{1,2}|[A-Z]{3}))?)(/[0-9]{1,2})?\\z' THEN
            IF LOCATE('/', v_item) > 0 THEN
                SET v_step = SUBSTRING_INDEX(v_item, '/', -1);
            END IF;
            IF v_range = '*' THEN
                SET v_first = p_low, v_last = p_high;
            ELSE
                CALL imq_cron_value(SUBSTRING_INDEX(v_range, '-', 1), p_low, p_names, v_first);
                IF LOCATE('-', v_range) > 0 THEN
                    CALL imq_cron_value(SUBSTRING_INDEX(v_range, '-', -1), p_low, p_names, v_last);
                ELSE
                    SET v_last = IF(LOCATE('/', v_item) > 0, p_high, v_first);
                END IF;
            END IF;
            -- Sunday is also 7, so SUN can end a range.
            IF p_high = 7 AND v_last = 0 AND v_first > 0 THEN
                SET v_last = 7;
            END IF;
        END IF;
        IF NOT COALESCE(v_first BETWEEN p_low AND v_last AND v_last <= p_high AND v_step > 0, 0) THEN
            CALL imq_raise_error('invalid_argument', CONCAT('cron: ', p_name, ': ', LEFT(v_item, 20), ' must be *, a value or a range of ',
                p_low, ' to ', p_high, ', with or without /step'));
        END IF;
        SET v_value = v_first;
        WHILE v_value <= v_last DO
            SET p_places = INSERT(p_places, v_value + 1, 1, '1'), v_value = v_value + v_step;
        END WHILE;
    END WHILE;
END

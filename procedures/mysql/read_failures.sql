-- read_failures: read finish_batch's list of failures and match it with the messages of the batch.
-- Arguments:   p_failures (one a line: id,retry_after_seconds,error), p_items (a JSON array of [id, attempt])
-- Returns:     p_failed: a JSON array of [id, attempt, retry or null, error] of the ids that are in p_items, the first line of
--              each; p_others: the items that are not listed; NULL for none
-- Errors:      50002 invalid_argument, naming the line
-- Transaction: reads nothing
-- Example:     CALL mq_read_failures('17,30,busy', '[[17,1],[18,1]]', @failed, @others);

DROP PROCEDURE IF EXISTS mq_read_failures;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_read_failures(
    IN p_failures longtext CHARACTER SET utf8mb4,
    IN p_items longtext CHARACTER SET utf8mb4,
    OUT p_failed longtext CHARACTER SET utf8mb4,
    OUT p_others longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- In bytes: to find the n-th character of a long utf8 text, its beginning is read each time.
    DECLARE v_rest longblob DEFAULT CONCAT(p_failures, '\n');
    DECLARE v_line, v_error longtext CHARACTER SET utf8mb4;
    DECLARE v_id, v_retry varchar(20) CHARACTER SET utf8mb4;
    DECLARE v_start, v_end, v_number bigint DEFAULT 1;
    DECLARE v_read longtext CHARACTER SET utf8mb4 DEFAULT '[';
    SET v_end = LOCATE(0x0A, v_rest);
    WHILE v_end > 0 DO
        SET v_line = CONVERT(SUBSTRING(v_rest, v_start, v_end - v_start) USING utf8mb4);
        IF v_line <> '' THEN
            IF SUBSTRING_INDEX(v_line, ',', 2) NOT REGEXP '^[0-9]{1,18},(-1|[0-9]{0,9})$'
                OR CHAR_LENGTH(v_line) - CHAR_LENGTH(SUBSTRING_INDEX(v_line, ',', 2)) < 1
                OR CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(v_line, ',', 2), ',', -1) AS signed) > 315360000
            THEN
                CALL mq_raise_error('invalid_argument', CONCAT('failures: line ', v_number, ': must be '
                    'id,retry_after_seconds,error; the seconds empty, -1, or 0 to 315,360,000'));
            END IF;
            SET v_id = SUBSTRING_INDEX(v_line, ',', 1);
            SET v_retry = SUBSTRING_INDEX(SUBSTRING_INDEX(v_line, ',', 2), ',', -1);
            SET v_error = SUBSTRING(v_line, CHAR_LENGTH(v_id) + CHAR_LENGTH(v_retry) + 3);
            IF LEFT(v_error, 1) = '"' THEN
                IF NOT JSON_VALID(v_error) THEN
                    CALL mq_raise_error('invalid_argument', CONCAT('failures: line ', v_number,
                        ': the error begins with a double quote and is not a JSON string'));
                END IF;
                SET v_error = JSON_UNQUOTE(v_error);
            END IF;
            SET v_read = CONCAT(v_read, IF(v_read = '[', '[', ',['), v_number, ',', v_id, ',',
                IF(v_retry = '', 'null', v_retry), ',', JSON_QUOTE(LEFT(v_error, 4000)), ']');
        END IF;
        SET v_number = v_number + 1;
        SET v_start = v_end + 1;
        SET v_end = LOCATE(0x0A, v_rest, v_start);
    END WHILE;
    SET v_read = CONCAT(v_read, ']');
    SELECT CONCAT('[', GROUP_CONCAT('[', i.id, ',', i.attempt, ',', COALESCE(f.retry, 'null'), ',', JSON_QUOTE(f.error), ']'), ']')
    INTO p_failed
    FROM (
        SELECT l.id, l.retry, l.error, ROW_NUMBER() OVER (PARTITION BY l.id ORDER BY l.n) AS nth
        FROM JSON_TABLE(v_read, '$[*]' COLUMNS (
            n bigint PATH '$[0]', id bigint PATH '$[1]', retry varchar(10) PATH '$[2]',
            error text CHARACTER SET utf8mb4 PATH '$[3]'
        )) AS l
    ) AS f
    JOIN JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt int PATH '$[1]')) AS i ON i.id = f.id
    WHERE f.nth = 1;
    SELECT CONCAT('[', GROUP_CONCAT('[', i.id, ',', i.attempt, ']' ORDER BY i.n), ']')
    INTO p_others
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (n FOR ORDINALITY, id bigint PATH '$[0]', attempt int PATH '$[1]')) AS i
    LEFT JOIN JSON_TABLE(COALESCE(p_failed, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]')) AS f ON f.id = i.id
    WHERE f.id IS NULL;
END//

DELIMITER ;

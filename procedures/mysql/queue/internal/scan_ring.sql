-- scan_ring: find the lowest ready message of a ring, and measure how long that took.
-- Arguments:   p_type, p_from (the low-water mark), p_after (ids above p_from, up to p_after), p_empty (1: nothing was
--              found after p_after either: measure that scan too)
-- Returns:     p_lowest_id (NULL when there is none), p_scanned (the duration of the scan, in microseconds)
-- Transaction: reads only, without locks

DROP PROCEDURE IF EXISTS imq_scan_ring;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_scan_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_from bigint,
    IN p_after bigint,
    IN p_empty tinyint,
    OUT p_lowest_id bigint,
    OUT p_scanned bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- Microseconds; reading 1,000 dead rows takes 100 to 200.
    DECLARE c_long int DEFAULT 500;
    DECLARE v_tries int DEFAULT 0;
    DECLARE v_begun datetime(6);
    DECLARE v_id bigint;
    -- Measure twice: cold pages are slow only the first time.
    tries: LOOP
        SET v_begun = UTC_TIMESTAMP(6), v_tries = v_tries + 1;
        IF p_empty THEN
            SELECT MAX(r.id) INTO v_id
            FROM (
                SELECT id FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > GREATEST(p_after, p_from)
                    AND attempts >= 0
                ORDER BY id LIMIT 1
            ) AS r;
        END IF;
        SELECT MAX(r.id) INTO p_lowest_id
        FROM (
            SELECT id FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > p_from AND id <= p_after
                AND attempts >= 0
            ORDER BY id LIMIT 1
        ) AS r;
        SET p_scanned = TIMESTAMPDIFF(MICROSECOND, v_begun, UTC_TIMESTAMP(6));
        IF p_scanned < c_long OR v_tries = 2 THEN
            LEAVE tries;
        END IF;
    END LOOP;
END//

DELIMITER ;

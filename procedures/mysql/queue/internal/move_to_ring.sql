-- move_to_ring: move messages of a type into its ring; one claim per type at a time does this.
-- Returns:     p_outside: 1 when some messages are still outside the ring
-- Transaction: the caller's own, which commits at once: until then other sessions do not see the moved messages; skips rows
--              that others have locked

DROP PROCEDURE IF EXISTS imq_move_to_ring;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_move_to_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    OUT p_outside tinyint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- Others skip this many locked rows, and MariaDB needs 290 bytes of its lock table for each.
    DECLARE c_rows int DEFAULT 2000;
    DECLARE v_mover tinyint;
    DECLARE v_rows longtext CHARACTER SET utf8mb4;
    SELECT COUNT(*) INTO v_mover
    FROM (SELECT n FROM mq_stripe WHERE n = CRC32(p_type) MOD 16384 FOR UPDATE SKIP LOCKED) AS s;
    IF v_mover THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts, ',', r.priority, ',"', r.run_at, '"]'), ']')
        INTO v_rows
        FROM (
            SELECT id, attempts, priority, run_at
            FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01')
            ORDER BY priority, run_at, id
            LIMIT c_rows
            FOR UPDATE SKIP LOCKED
        ) AS r;
        IF v_rows IS NOT NULL THEN
            CALL imq_delete_ready(p_type, v_rows);
            INSERT INTO mq_ready (type, priority, run_at, id, attempts)
            SELECT p_type, -32768, '1000-01-01', j.id, j.attempts
            FROM JSON_TABLE(v_rows, '$[*]' COLUMNS (id bigint PATH '$[0]', attempts smallint PATH '$[1]')) AS j;
        END IF;
    END IF;
    SELECT EXISTS (
        SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
        WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01') AND attempts >= 0
    ) INTO p_outside;
END//

DELIMITER ;

-- open_claim: begin a claim: create a batch, rescue expired leases, and list the entries that are due.
-- Returns:     p_batch_key; p_table (as imq_polled_settings returns it, with the low-water mark); p_due: a JSON array of [id,
--              ident, active] of due entries, NULL when there are none
--
-- Callers can also call it directly: it returns a batch key only to callers who may change the table, and all later steps
-- need that key. Therefore batch keys are random and cannot be guessed.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_open_claim(
    IN p_name longtext CHARACTER SET utf8mb4, IN p_size int, IN p_consumer varchar(200) CHARACTER SET utf8mb4,
    IN p_lease_seconds int, OUT p_batch_key varchar(36) CHARACTER SET utf8mb4,
    OUT p_table longtext CHARACTER SET utf8mb4, OUT p_due longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    -- As in hold.
    DECLARE v_key varchar(36) CHARACTER SET utf8mb4 DEFAULT INSERT(INSERT(INSERT(INSERT(LEFT(LOWER(COALESCE(
        /*!80000 HEX(RANDOM_BYTES(16)), */ /*M!101001 HEX(RANDOM_BYTES(16)), */ SHA2(CONCAT(UUID(), RAND(), RAND()), 256)
        )), 32), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-');
    DECLARE v_lost longtext CHARACTER SET utf8mb4;
    CALL imq_use_polled(p_name, 'claim');
    CALL imq_lock_polled(p_name);
    CALL imq_polled_settings(p_name, p_table);
    SET p_batch_key = v_key;
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(b.batch_key)), ']') INTO v_lost
    FROM (SELECT batch_key FROM mq_polled_batch WHERE name = p_name AND lease_until <= v_now FOR UPDATE SKIP LOCKED) AS b;
    IF v_lost IS NOT NULL THEN
        DELETE b FROM JSON_TABLE(v_lost, '$[*]' COLUMNS (batch_key varchar(36) CHARACTER SET utf8mb4 PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_batch AS b FORCE INDEX (PRIMARY)
            ON b.batch_key = CONVERT(j.batch_key USING utf8mb4) COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
        SELECT CONCAT('[', GROUP_CONCAT(e.id ORDER BY e.id), ']') INTO v_lost
        FROM JSON_TABLE(v_lost, '$[*]' COLUMNS (batch_key varchar(36) CHARACTER SET utf8mb4 PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_row AS e
            ON e.batch_key = CONVERT(j.batch_key USING utf8mb4) COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
        UPDATE JSON_TABLE(COALESCE(v_lost, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
        SET e.state = 'N', e.batch_key = NULL, e.run_at = v_now, e.error = 'lease expired';
    END IF;
    SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(d.id, d.ident, d.active)), ']') INTO p_due
    FROM (
        SELECT id, ident, active FROM mq_polled_row
        WHERE name = p_name AND state = 'N' AND run_at <= v_now ORDER BY run_at, id LIMIT p_size
    ) AS d;

    -- taken: how many rows at ready_value may have entries. With a key, only whether there are any matters.
    SELECT JSON_MERGE_PATCH(p_table, JSON_OBJECT('from', p.place, 'from_hash', HEX(p.place_hash), 'copies', p.copies,
        'from_place', IF(p.place IS NOT NULL AND p.scanned_at > v_now - INTERVAL 1 SECOND AND p.scanned_at <= v_now, 1, 0),
        'count', IF(p.counted_at BETWEEN v_now - INTERVAL 1 SECOND AND v_now, 0, 1),
        'taken', 0 + IF(p.key_columns IS NULL,
            (SELECT COUNT(*) FROM mq_polled_row AS e
                WHERE e.name = p_name AND e.active = 0 AND (e.state <> 'E' OR p.status_column IS NULL)),
            EXISTS (SELECT * FROM mq_polled_row AS e WHERE e.name = p_name AND e.state = 'N')
            OR p.active_value IS NULL AND EXISTS (SELECT * FROM mq_polled_row AS e WHERE e.name = p_name AND e.state = 'A')
            OR p.status_column IS NULL AND EXISTS (SELECT * FROM mq_polled_row AS e WHERE e.name = p_name AND e.state = 'E'))))
    INTO p_table
    FROM mq_polled AS p WHERE p.name = p_name;
    INSERT INTO mq_polled_batch (batch_key, lease_until, lease_seconds, name, consumer)
    VALUES (p_batch_key, v_now + INTERVAL p_lease_seconds SECOND, p_lease_seconds, p_name, p_consumer);
END

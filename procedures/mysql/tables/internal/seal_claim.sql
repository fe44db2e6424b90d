-- seal_claim: end a claim: drop entries whose rows were not written, and return the others.
-- Arguments:   p_batch_key (from imq_open_claim), p_written (a JSON array of the entries whose rows were set to
--              active_value), p_rows ('[id,row],...'), p_scanned (1: the claim started at the table's start; NULL: it found
--              no new rows)
-- Returns:     id, key, row, attempt, batch_key, lease_until: the result set of claim_rows

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_seal_claim(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, IN p_written longtext CHARACTER SET utf8mb4,
    IN p_rows longtext CHARACTER SET utf8mb4, IN p_scanned tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_active, v_status, v_keyed, v_deletes tinyint;
    DECLARE v_dropped longtext CHARACTER SET utf8mb4;
    DECLARE v_last bigint;
    SELECT b.name, p.active_value IS NOT NULL, p.status_column IS NOT NULL, p.key_columns IS NOT NULL, p.on_complete = 'delete'
    INTO v_name, v_active, v_status, v_keyed, v_deletes
    FROM mq_polled_batch AS b JOIN mq_polled AS p ON p.name = b.name WHERE b.batch_key = p_batch_key;
    IF v_active THEN
        UPDATE JSON_TABLE(COALESCE(p_written, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
        SET e.active = 1
        WHERE e.batch_key = p_batch_key;
        -- There may have been fewer equal rows left than were counted.
        SELECT CONCAT('[', GROUP_CONCAT(id), ']') INTO v_dropped FROM mq_polled_row WHERE batch_key = p_batch_key AND active = 0;
        IF v_dropped IS NOT NULL THEN
            DELETE e FROM JSON_TABLE(v_dropped, '$[*]' COLUMNS (id bigint PATH '$')) AS j
            STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id;
        END IF;
    END IF;
    IF v_status AND v_keyed THEN
        -- Delete old entries of dead rows that somebody has set back to ready.
        SELECT CONCAT('[', GROUP_CONCAT(o.id), ']') INTO v_dropped
        FROM mq_polled_row AS e
        STRAIGHT_JOIN mq_polled_row AS o ON o.name = e.name AND o.ident_hash = e.ident_hash AND o.state = 'E'
        WHERE e.batch_key = p_batch_key;
        IF v_dropped IS NOT NULL THEN
            DELETE e FROM JSON_TABLE(v_dropped, '$[*]' COLUMNS (id bigint PATH '$')) AS j
            STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id;
        END IF;
    END IF;
    SELECT MAX(id) INTO v_last FROM mq_polled_row WHERE batch_key = p_batch_key;
    IF v_last IS NULL THEN
        DELETE FROM mq_polled_batch WHERE batch_key = p_batch_key;
    ELSEIF p_scanned IS NOT NULL AND NOT v_status AND (v_keyed OR NOT v_deletes) THEN
        UPDATE mq_polled AS p JOIN mq_polled_row AS e ON e.id = v_last
        SET p.place = e.place, p.place_hash = e.ident_hash, p.copies = e.copies,
            p.scanned_at = IF(p_scanned, UTC_TIMESTAMP(6), p.scanned_at)
        WHERE p.name = v_name;
    ELSEIF v_status OR NOT v_keyed AND v_deletes THEN
        -- In a cluster a row lock holds on one node only. Changing the row makes one of two parallel claims fail with a
        -- conflict; otherwise both would get the same rows. These shapes have no low-water mark, so the column copies is
        -- free.
        UPDATE mq_polled SET copies = COALESCE(copies, 0) + 1 WHERE name = v_name;
    END IF;
    SELECT e.id, e.key_json AS row_key, j.row_ AS row_data, e.attempts AS attempt, b.batch_key, b.lease_until
    FROM JSON_TABLE(CONCAT('[', COALESCE(p_rows, ''), ']'), '$[*]' COLUMNS (id bigint PATH '$[0]',
        row_ longtext CHARACTER SET utf8mb4 PATH '$[1]')) AS j
    STRAIGHT_JOIN mq_polled_row AS e ON e.id = j.id AND e.batch_key = p_batch_key
    STRAIGHT_JOIN mq_polled_batch AS b ON b.batch_key = e.batch_key
    ORDER BY e.id;
END

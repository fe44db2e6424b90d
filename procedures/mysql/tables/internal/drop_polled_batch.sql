-- drop_polled_batch: end a claim, or only the claim of some entries. The transaction that does it owns these entries, which stay
--              for the caller.
-- Arguments:   p_batch_key, p_outcomes (a list of outcomes: only the entries that it names; NULL: all)
-- Returns:     p_batch_key: the key that only these entries have then; p_table (as imq_polled_settings returns it), NULL when the lease was lost; p_items: a JSON array of [id,
--              ident, active, attempts]
-- Transaction: joins the caller's; calls for the same batch wait for each other

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_drop_polled_batch(
    INOUT p_batch_key longtext CHARACTER SET utf8mb4, IN p_outcomes longtext CHARACTER SET utf8mb4,
    OUT p_table longtext CHARACTER SET utf8mb4, OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_pairs, v_failed, v_released, v_done, v_left, v_some longtext CHARACTER SET utf8mb4;
    DECLARE v_key varchar(36) CHARACTER SET utf8mb4 DEFAULT p_batch_key;
    SELECT MAX(b.name) INTO v_name
    FROM (SELECT name FROM mq_polled_batch WHERE batch_key = p_batch_key FOR UPDATE) AS b;
    SET p_table = NULL, p_items = NULL;
    IF v_name IS NOT NULL THEN
        IF p_outcomes IS NOT NULL THEN
            SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(id, 0) ORDER BY id), ']') INTO v_pairs
            FROM mq_polled_row WHERE batch_key = p_batch_key;
            CALL imq_read_outcomes(p_outcomes, COALESCE(v_pairs, '[]'), 1, v_failed, v_released, v_done, v_left);
        END IF;
        IF v_left IS NULL THEN
            DELETE FROM mq_polled_batch WHERE batch_key = p_batch_key;
        ELSE
            -- The named entries get a key of their own.
            SET p_batch_key = UUID(), v_some = CONCAT('[', CONCAT_WS(',', SUBSTRING(v_failed, 2, CHAR_LENGTH(v_failed) - 2),
                SUBSTRING(v_released, 2, CHAR_LENGTH(v_released) - 2), SUBSTRING(v_done, 2, CHAR_LENGTH(v_done) - 2)), ']');
            UPDATE JSON_TABLE(v_some, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
            SET e.batch_key = p_batch_key
            WHERE e.batch_key = v_key;
        END IF;
        CALL imq_polled_settings(v_name, p_table);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(id, ident, active, attempts) ORDER BY id), ']') INTO p_items
        FROM mq_polled_row WHERE batch_key = p_batch_key;
    END IF;
END

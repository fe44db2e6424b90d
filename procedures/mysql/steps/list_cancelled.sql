-- list_cancelled: which messages of a batch were cancelled; for heartbeats.
-- Arguments:   p_batch_key (the key that the claim returned)
-- Returns:     id; no row when none was cancelled, or the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_cancelled('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_cancelled(IN p_batch_key longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    CALL imq_require_key(p_batch_key);
    SELECT m.id
    FROM mq_batch AS b
    STRAIGHT_JOIN JSON_TABLE(b.items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    WHERE b.batch_key = p_batch_key AND m.cancelled_at IS NOT NULL
    ORDER BY m.id;
END

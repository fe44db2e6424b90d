-- lock_key: before a live message is changed inside a transaction: lock its dedup_key, unless the message is claimed or
--           dead.
-- Arguments:   p_type, p_dedup_key, p_grouped (the policy), p_id (the live message)
-- Returns:     p_id: the message that has the key now, NULL for none; p_new: 0 when it is claimed or dead
-- Transaction: joins the caller's; waits for an open transaction that has changed or finished the message
--
-- The lock makes changes of one message run one after the other. A session that finishes a message deletes its key, so it
-- would wait for the caller: hence no lock when the message is claimed or dead.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_lock_key(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_dedup_key varchar(200) CHARACTER SET utf8mb4,
    IN p_grouped tinyint, INOUT p_id bigint, OUT p_new tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The state of a message that the snapshot of a REPEATABLE READ transaction does not show is unknown.
    SELECT COALESCE(MAX(COALESCE(d.id, g.id, r.id, l.id, o.id) IS NOT NULL), 1) INTO p_new
    FROM mq_message AS m FORCE INDEX (PRIMARY)
    LEFT JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = p_type AND d.run_at = m.run_at AND d.id = m.id
    LEFT JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
    LEFT JOIN mq_ready AS r FORCE INDEX (PRIMARY)
        ON NOT p_grouped AND r.type = p_type AND r.priority = m.priority AND r.lane = '' AND r.run_at = m.run_at AND r.id = m.id
    LEFT JOIN mq_ready AS l FORCE INDEX (PRIMARY)
        ON NOT p_grouped AND l.type = p_type AND l.priority = m.priority AND l.lane = COALESCE(m.group_key, '') AND l.run_at = '1000-01-01' AND l.id = m.id
    LEFT JOIN mq_ready AS o FORCE INDEX (PRIMARY)
        ON NOT p_grouped AND o.type = p_type AND o.priority = -32768 AND o.lane = '' AND o.run_at = '1000-01-01' AND o.id = m.id
    WHERE m.id = p_id;
    IF p_new THEN
        SELECT MAX(k.id) INTO p_id
        FROM (SELECT id FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key FOR UPDATE) AS k;
    END IF;
END

-- take_batch: receive and finish messages in one call: a commit removes them, a rollback makes them ready again.
-- Arguments:   p_type (1 to 200 characters), p_size (1 to 10,000; NULL: 1)
-- Returns:     the messages in order of priority, run_at, id; batch_key and lease_until are NULL; no rows when nothing is
--              ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED, does the work and commits; other claims skip the messages
--              that it has taken
-- Example:     START TRANSACTION; CALL mq_take_batch('email', 10); INSERT INTO ...; COMMIT;

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_take_batch(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_on_complete varchar(7) CHARACTER SET ascii;
    DECLARE v_paused, v_grouped, v_fair, v_own tinyint;
    DECLARE v_most, v_max_active, v_rate, v_rate_seconds int;
    DECLARE v_size int DEFAULT COALESCE(p_size, 1);
    DECLARE v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_begin_call(1, v_own);
    SELECT on_complete, paused, grouped, fair, max_active, rate, rate_seconds, max_attempts
    INTO v_on_complete, v_paused, v_grouped, v_fair, v_max_active, v_rate, v_rate_seconds, v_most
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_max_active + v_rate > 0 AND NOT v_paused THEN
        CALL imq_allowance(p_type, v_size, v_max_active, v_rate, v_rate_seconds, v_size);
    END IF;
    IF v_size > 0 AND NOT v_paused THEN
        CALL imq_pick(p_type, v_grouped, v_fair, v_size, 1, NULL, NULL, v_items);
    END IF;
    IF v_items IS NULL THEN
        CALL imq_no_messages();
    ELSE
        SELECT m.id, m.type, m.body, m.headers, m.priority, m.group_key, m.dedup_key, j.attempt, m.created_at, m.source,
            CAST(NULL AS char(36)) AS batch_key, CAST(NULL AS datetime(6)) AS lease_until,
            COALESCE(m.max_attempts, v_most) AS max_attempts, COALESCE(m.sent_run_at, m.run_at) AS run_at,
            CAST(NULL AS char) AS extra
        FROM JSON_TABLE(v_items, '$[*]' COLUMNS (n FOR ORDINALITY, id bigint PATH '$[0]', attempt int PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        ORDER BY j.n;
        CALL imq_consumer_name(NULL, v_consumer);
        -- pick_grouped has already freed their groups.
        CALL imq_complete_messages(p_type, v_on_complete, 0, v_items, v_consumer);
        IF v_max_active + v_rate > 0 THEN
            CALL imq_spend(p_type, JSON_LENGTH(v_items), v_rate, v_rate_seconds);
        END IF;
    END IF;
    CALL imq_end_call(v_own);
END

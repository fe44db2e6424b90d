-- take_group: take the first messages of a group that its limits allow; if it has no token left, delay its first message
--             instead.
-- Arguments:   p_type, p_group, p_size (maximum number of messages), p_take (1: called by take_batch; see pick_grouped),
--              p_lone (messages that are not in the group yet: a JSON array of [id], or NULL)
-- Returns:     p_items: '[id,number of this attempt],...', NULL for none; p_count: how many; p_put_off: 1 when the first
--              message was delayed until the next token
-- Transaction: joins the caller's, which keeps the group's stripe locked until it ends; never waits

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_group(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_group varchar(200) CHARACTER SET utf8mb4, IN p_size int,
    IN p_take tinyint, IN p_lone longtext CHARACTER SET utf8mb4, OUT p_items longtext CHARACTER SET utf8mb4,
    OUT p_count int, OUT p_put_off tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
whole: BEGIN
    DECLARE v_stripe, v_free int;
    DECLARE v_active, v_tokens, v_first bigint;
    DECLARE v_waits, v_ordered tinyint;
    DECLARE v_places, v_rate, v_rate_seconds, v_turn int;
    DECLARE v_now, v_full_at datetime(6);
    DECLARE v_list longtext CHARACTER SET utf8mb4;
    SET p_items = NULL, p_count = 0, p_put_off = 0;
    SELECT MAX(s.n) INTO v_stripe
    FROM (SELECT n FROM mq_stripe WHERE n = CRC32(CONCAT(p_type, '\n', p_group)) MOD 16384 FOR UPDATE SKIP LOCKED) AS s;
    IF v_stripe IS NULL THEN
        LEAVE whole;
    END IF;
    -- The group's own limits and share, or those of the queue.
    SELECT q.ordered, IF(q.ordered, 1, COALESCE(o.max_active, q.group_max_active)), COALESCE(o.rate, q.group_rate),
        COALESCE(o.rate_seconds, q.group_rate_seconds), IF(q.fair, COALESCE(o.weight, 1), p_size)
    INTO v_ordered, v_places, v_rate, v_rate_seconds, v_turn
    FROM mq_queue AS q
    LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY) ON o.type = p_type AND o.group_key = p_group
    WHERE q.type IN (p_type, '') ORDER BY q.type DESC LIMIT 1;
    IF p_lone IS NOT NULL THEN
        CALL imq_add_lone(p_type, p_lone);
    END IF;
    SELECT COUNT(*) INTO v_waits FROM mq_group_lock WHERE type = p_type AND group_key = p_group AND place = 0;
    SET v_free = IF(v_waits, 0, LEAST(p_size, v_turn));
    IF v_places > 0 AND v_free > 0 THEN
        SELECT COUNT(*) INTO v_active FROM mq_group_lock FORCE INDEX (PRIMARY) WHERE type = p_type AND group_key = p_group;
        SET v_free = LEAST(v_free, GREATEST(v_places - v_active, 0));
    END IF;
    IF v_rate > 0 AND v_free > 0 THEN
        SELECT MAX(full_at) INTO v_full_at FROM mq_bucket FORCE INDEX (PRIMARY) WHERE type = p_type AND group_key = p_group;
        SET v_now = UTC_TIMESTAMP(6);
        IF v_full_at > v_now + INTERVAL v_rate_seconds SECOND THEN
            -- The clock was set back, or the period is shorter now: the bucket is empty and starts to fill now.
            SET v_full_at = v_now + INTERVAL v_rate_seconds SECOND;
            UPDATE mq_bucket SET full_at = v_full_at WHERE type = p_type AND group_key = p_group;
        END IF;
        CALL imq_tokens(v_full_at, v_now, v_rate, v_rate_seconds, v_tokens);
        SET v_free = LEAST(v_free, v_tokens);
        IF v_tokens = 0 AND NOT p_take THEN
            CALL imq_put_off(p_type, JSON_ARRAY(p_group), v_list);
            SET p_put_off = v_list IS NOT NULL;
        END IF;
    END IF;
    IF v_free = 0 THEN
        LEAVE whole;
    END IF;

    IF v_ordered THEN
        -- Skip the group if another transaction is cancelling or purging its first message.
        SELECT MIN(g.id) INTO v_first FROM mq_grouped AS g FORCE INDEX (PRIMARY) WHERE g.type = p_type AND g.group_key = p_group;
        SELECT GROUP_CONCAT('[', g.id, ',', g.attempts + 1, ']'), COUNT(*) INTO p_items, p_count
        FROM (
            SELECT id, attempts FROM mq_grouped FORCE INDEX (PRIMARY)
            WHERE type = p_type AND group_key = p_group AND id = v_first
            FOR UPDATE SKIP LOCKED
        ) AS g;
    ELSE
        SELECT GROUP_CONCAT('[', g.id, ',', g.attempts + 1, ']' ORDER BY g.id), COUNT(*) INTO p_items, p_count
        FROM (
            SELECT id, attempts FROM mq_grouped FORCE INDEX (PRIMARY)
            WHERE type = p_type AND group_key = p_group
            ORDER BY id
            LIMIT v_free
            FOR UPDATE SKIP LOCKED
        ) AS g;
    END IF;
    IF p_count > 0 THEN
        SET v_list = CONCAT('[', p_items, ']');
        DELETE g
        FROM JSON_TABLE(v_list, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = p_group AND g.id = j.id;
        INSERT INTO mq_group_lock (type, group_key, place, id)
        SELECT p_type, p_group, IF(v_places = 1, -1, j.id), j.id
        FROM JSON_TABLE(v_list, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j;
        IF v_rate > 0 THEN
            SET v_now = UTC_TIMESTAMP(6);
            INSERT INTO mq_bucket (type, group_key, full_at)
            VALUES (p_type, p_group, v_now + INTERVAL (p_count * v_rate_seconds * 1000000 + v_rate - 1) DIV v_rate MICROSECOND)
            ON DUPLICATE KEY UPDATE
                full_at = GREATEST(LEAST(mq_bucket.full_at, v_now + INTERVAL v_rate_seconds SECOND), v_now)
                    + INTERVAL (p_count * v_rate_seconds * 1000000 + v_rate - 1) DIV v_rate MICROSECOND;
        END IF;
    END IF;
END

-- pick_grouped: take the first messages of groups that are not blocked: one per group in an ordered queue, otherwise as
--               many as the limits per group allow.
-- Arguments:   p_type, p_size, p_take (1: called by take_batch; its own commit finishes the messages, perhaps much later)
-- Returns:     p_items: a JSON array of [id, number of this attempt]; NULL when every group is blocked
--
-- In a grouped queue a row of mq_ready is a ticket: the group of this message may have a message to claim. Every message
-- brings a ticket, so senders lock nothing. A ticket is only a hint and is read without a lock. If a group seems free, the
-- claim locks its stripe (mq_stripe), and skips stripes that others have locked. From then on no other claim can start on
-- the group. A second read shows whether the group is free and which message is its first, whichever message the ticket
-- belongs to.
--
-- No call waits, not even one that finishes messages. MariaDB puts a lock that SKIP LOCKED skips into the lock queue for a
-- moment, and reports a deadlock if the holder really waits for the claim. So one rule keeps groups from getting stuck: in
-- a group that is not blocked, one message in mq_grouped has its own ticket. A call that unblocks a group issues one after
-- its last read of the group. Of a blocked group, a claim drops all tickets except the first, while it has that ticket and
-- its message locked: a cancel cannot remove them then. Tickets of messages that are not in mq_grouped are dropped; these
-- messages get new tickets when they return.
--
-- In a queue without order, several messages of a group may be active. A call that is finishing one of them may have seen
-- less than the claim sees. So a claim that drops tickets of a group it took from issues a new one while messages are left,
-- even if the group is full. If a group has no token, its first message is delayed: see put_off.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick_grouped(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_take tinyint,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The maximum number of groups per call: a take keeps stripes locked until its handler ends, and they also block other
    -- groups.
    DECLARE c_groups int DEFAULT 250;
    DECLARE c_tickets int DEFAULT 10000;
    -- pick_heads reads as many tickets as messages are wanted. A smaller claim reads more: it may find a message that is not
    -- in its group yet, sent by a transaction that began before the queue was ordered, in front of its group.
    DECLARE c_heads int DEFAULT 50;
    -- As in take_lanes.
    DECLARE c_most int DEFAULT 1000;
    DECLARE c_again int DEFAULT 50;
    DECLARE v_ordered, v_limits, v_rated, v_fair, v_some tinyint;
    DECLARE v_places, v_rate, v_rate_seconds int;
    DECLARE v_left int DEFAULT p_size;
    DECLARE v_chunk int DEFAULT 50 + 2 * LEAST(v_left, c_groups);
    DECLARE v_scanned, v_read, v_lone, v_count, v_last, v_lanes, v_in_round, v_again int DEFAULT 0;
    -- pick_heads has taken all that was wanted: then a take has inserted no lock rows.
    DECLARE v_all, v_wrapped tinyint DEFAULT 0;
    DECLARE v_priority int DEFAULT -32769;
    DECLARE v_lane varchar(200) CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_run_at datetime(6) DEFAULT '1000-01-01';
    DECLARE v_id, v_n, v_read_n bigint DEFAULT 0;
    DECLARE v_passed varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_from, v_start, v_next varchar(201) CHARACTER SET utf8mb4;
    DECLARE v_reader varchar(5) CHARACTER SET utf8mb4;
    DECLARE v_tickets, v_items, v_groups, v_taken, v_used, v_spent, v_busy, v_list longtext CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_some = 0;
    SELECT ordered, fair, IF(ordered, 1, group_max_active), group_rate, group_rate_seconds, group_limits
    INTO v_ordered, v_fair, v_places, v_rate, v_rate_seconds, v_limits
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    SET p_items = NULL, v_left = IF(v_ordered, LEAST(p_size, c_groups), p_size), v_rated = v_rate > 0 OR v_limits;

    IF v_ordered AND NOT v_rated AND NOT v_fair AND v_left >= c_heads THEN
        -- In most claims this takes all messages.
        CALL imq_pick_heads(p_type, v_left, p_take, p_items, v_taken, v_count);
        SET v_left = v_left - v_count, v_all = v_left = 0;
    END IF;
    tickets: WHILE v_left > 0 AND v_scanned < c_tickets DO
        IF v_fair AND v_from IS NULL THEN
            -- The next priority, after the lane where the last claim stopped: see take_lanes.
            SET v_some = 1, v_wrapped = 0, v_in_round = 0, v_n = 0, v_passed = NULL, v_start = '';
            SELECT priority INTO v_priority FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND priority > v_priority AND attempts >= 0
            ORDER BY priority, lane, run_at, id
            LIMIT 1;
            IF NOT v_some THEN
                LEAVE tickets;
            END IF;
            SET v_reader = LPAD(v_priority + 32768, 5, '0');
            SELECT n, CONCAT(lane, CHAR(0)) INTO v_n, v_start
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = v_reader ORDER BY n DESC, after_id DESC LIMIT 1;
            SET v_from = v_start, v_read_n = v_n;
        END IF;
        IF v_fair THEN
            SET v_chunk = LEAST(v_left, c_groups);
            CALL imq_read_lanes(p_type, v_priority, v_from, IF(v_wrapped, v_start, NULL), v_chunk, 1, v_list, v_lanes, v_next);
            SET v_list = COALESCE(CONCAT('[', v_list, ']'), '[]');
        END IF;
        CALL imq_read_tickets(p_type, p_take, IF(v_ordered, -1, 0), IF(v_ordered, 0, v_places), v_rate, v_rate_seconds,
            v_limits AND NOT v_ordered, v_chunk, v_priority, v_lane, v_run_at, v_id, v_list, v_tickets, v_read, v_lone, v_spent, v_busy);
        SET v_items = NULL, v_groups = NULL, v_used = NULL, v_count = 0, v_last = v_read;
        IF v_fair AND v_spent IS NOT NULL AND v_again < c_again THEN
            -- The next ticket of these lanes may be of use.
            CALL imq_drop_tickets(p_type, v_spent, NULL);
            SET v_again = v_again + 1, v_scanned = v_scanned + 1;
            ITERATE tickets;
        ELSEIF v_read = 0 AND NOT v_fair THEN
            LEAVE tickets;
        ELSEIF v_read > 0 AND v_ordered AND NOT v_rated THEN
            CALL imq_take_heads(p_type, v_left, v_tickets, v_lone, v_items, v_groups, v_used, v_count, v_last);
        ELSEIF v_read > 0 THEN
            CALL imq_take_groups(p_type, v_left, p_take, v_tickets, v_lone, v_rate, v_rate_seconds, v_limits, v_items, v_groups,
                v_used, v_count, v_last);
        END IF;
        IF v_items IS NOT NULL THEN
            SET p_items = CONCAT_WS(',', p_items, v_items), v_taken = CONCAT_WS(',', v_taken, v_groups),
                v_left = v_left - v_count, v_in_round = v_in_round + v_count;
        END IF;
        IF p_take THEN
            -- Drop only the tickets that this take used: others must not be hidden until its handler ends.
            SET v_busy = NULL;
        ELSEIF v_items IS NOT NULL AND v_ordered AND NOT v_rated THEN
            -- Drop all tickets read of the groups claimed just now, or every claim reads all tickets of a long group.
            SELECT GROUP_CONCAT('[', j.id, ',', j.priority, ',"', j.run_at, '",', JSON_QUOTE(j.lane), ']') INTO v_used
            FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                what int PATH '$[3]', group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[5]',
                lane varchar(200) CHARACTER SET utf8mb4 PATH '$[6]'
            )) AS j
            STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY) ON l.type = p_type AND l.group_key = j.group_key
            WHERE j.what = 2;
        END IF;
        IF v_read > 0 THEN
            CALL imq_drop_tickets(p_type, NULLIF(CONCAT_WS(',', v_spent, v_used), ''), v_busy);
        END IF;
        SET v_scanned = v_scanned + GREATEST(v_last, 1), v_again = 0;

        IF v_fair THEN
            IF v_last > 0 THEN
                SET v_passed = JSON_UNQUOTE(JSON_EXTRACT(v_tickets, CONCAT('$[', v_last - 1, '][6]'))), v_n = v_n + v_last;
            END IF;
            SET v_from = v_next;
            IF v_next IS NULL AND NOT v_wrapped THEN
                SET v_wrapped = 1, v_from = '';
            ELSEIF v_next IS NULL AND v_in_round > 0 AND NOT v_ordered THEN
                -- After a round with messages another one may find more. What this claim has taken frees no place.
                SET v_wrapped = 0, v_in_round = 0, v_from = v_start;
                CALL imq_issue_tickets(p_type, CONCAT('[', v_taken, ']'));
            END IF;
            IF v_passed IS NOT NULL AND (v_from IS NULL OR v_left = 0 OR v_scanned >= c_tickets) THEN
                CALL imq_save_position(p_type, v_reader, v_n, c_most, v_passed, IF(RAND() < 0.01, 0, v_read_n - 20 * p_size), v_read_n, 0,
                    c_most);
            END IF;
        ELSE
            IF v_last = v_read AND v_read < v_chunk THEN
                LEAVE tickets;
            END IF;
            SET v_priority = JSON_EXTRACT(v_tickets, CONCAT('$[', v_last - 1, '][1]')),
                v_run_at = JSON_UNQUOTE(JSON_EXTRACT(v_tickets, CONCAT('$[', v_last - 1, '][2]'))),
                v_lane = JSON_UNQUOTE(JSON_EXTRACT(v_tickets, CONCAT('$[', v_last - 1, '][6]'))),
                v_id = JSON_EXTRACT(v_tickets, CONCAT('$[', v_last - 1, '][0]')), v_chunk = 1000;
        END IF;
    END WHILE;

    IF p_items IS NOT NULL THEN
        SET p_items = CONCAT('[', p_items, ']');
        IF p_take THEN
            -- The caller's own commit finishes the messages.
            SET v_groups = CONCAT('[', v_taken, ']');
            IF NOT v_all THEN
                CALL imq_drop_locks(p_type, p_items, v_groups);
            END IF;
            CALL imq_issue_tickets(p_type, v_groups);
        ELSEIF NOT v_ordered THEN
            SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(k.group_key)), ']') INTO v_groups
            FROM (
                SELECT DISTINCT j.group_key
                FROM JSON_TABLE(CONCAT('[', v_taken, ']'), '$[*]' COLUMNS (
                    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$'
                )) AS j
            ) AS k;
            CALL imq_issue_tickets(p_type, v_groups);
        END IF;
    END IF;
END

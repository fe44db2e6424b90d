-- pick_grouped: take messages of groups that are not blocked: one per group in an ordered queue, otherwise as many as the limits
--               per group allow, in a fair queue also no more than the group's turns.
-- Arguments:   p_type, p_size, p_take (1: called by take_batch; its own commit finishes the messages, perhaps much later),
--              p_from to p_turns (in a fair queue, see take_lanes; p_from NULL: in claim order)
-- Returns:     id and attempt (the number of this attempt); lane, n, turn and rest as take_lanes
-- Transaction: joins the caller's, which is NO WAIT; keeps the stripes of its groups locked; the caller fetches all rows
--
-- In a grouped queue a row of mq_ready is a ticket: the group of this message may have a message to claim. Every message
-- brings a ticket, so senders lock nothing. A group has places: one in an ordered queue, otherwise group_max_active. A claim
-- that finds a ticket reads its group. If a place is free, the group's first messages are taken, whichever message the ticket
-- belongs to; a row lock in mq_stripe separates concurrent claims. The group is blocked if no place is free or if its first
-- message waits for a retry or a token. Then its tickets are dropped: see drop_blocked. A call that unblocks a group issues a new
-- ticket.
--
-- mq_met has the groups of this call that may be met again: U taken; B blocked; K blocked, and its tickets may be dropped; X leave
-- alone. It is empty before and after the call. Only a take of a fair queue, which has no rows in mq_group_lock, leaves T until
-- pick_fair ends: a group with `taken` messages. If the call fails, its rows are undone too.
--
-- A message that another transaction is cancelling or purging is skipped; in an ordered queue it blocks its group.
CREATE OR ALTER PROCEDURE imq_pick_grouped (
    p_type mq_name, p_size integer, p_take smallint, p_from mq_lane, p_until mq_lane, p_rest integer, p_turns integer
)
RETURNS (id bigint, attempt smallint, lane mq_lane, n integer, turn integer, rest integer)
AS
-- The maximum number of groups per call: a take keeps stripes locked until its handler ends, and they also block other
-- groups.
DECLARE c_groups integer = 250;
DECLARE c_tickets integer = 10000;
DECLARE c_blocked integer = 1000;
DECLARE c_locked_messages integer = 1000;
DECLARE v_ordered smallint; DECLARE v_own smallint;
DECLARE v_places integer; DECLARE v_rate integer; DECLARE v_seconds integer;
DECLARE v_weight integer = 1;
DECLARE v_from varchar(821) CHARACTER SET OCTETS;
DECLARE v_done mq_lane;
DECLARE v_open smallint = 1;
DECLARE v_groups integer = 0;
DECLARE v_read integer = 0;
DECLARE v_met integer = 0; DECLARE v_keep smallint;
DECLARE v_blocked integer = 0;
DECLARE v_ticket bigint; DECLARE v_id bigint;
DECLARE v_priority smallint; DECLARE v_attempts smallint; DECLARE v_waits smallint; DECLARE v_drop smallint;
DECLARE v_more smallint;
DECLARE v_run_at timestamp; DECLARE v_token_at timestamp;
DECLARE v_lane mq_lane;
DECLARE v_group_key mq_name;
DECLARE v_place char(8) CHARACTER SET OCTETS;
DECLARE v_state char(1) CHARACTER SET ASCII;
DECLARE v_locked integer; DECLARE v_free integer; DECLARE v_limit integer; DECLARE v_tokens integer;
DECLARE v_taken integer; DECLARE v_had integer; DECLARE v_passed integer; DECLARE v_mine integer;
BEGIN
    SELECT ordered, IIF(ordered = 1, 1, group_max_active), group_rate, group_rate_seconds FROM imq_policy(:p_type)
    INTO v_ordered, v_places, v_rate, v_seconds;
    v_own = IIF(EXISTS (SELECT * FROM mq_queue_group WHERE type = :p_type), 1, 0);
    n = 0;
    v_keep = IIF(p_take = 1 AND p_from IS NOT NULL AND p_type IS NOT NULL, 1, 0);
    v_from = p_from;
    WHILE (v_open = 1) DO
    BEGIN
        v_open = 0;
        FOR SELECT id, priority, run_at, attempts, lane, group_key, waits, place FROM imq_read_tickets(:p_type, :v_from)
            INTO v_ticket, v_priority, v_run_at, v_attempts, v_lane, v_group_key, v_waits, v_place
        DO
        BEGIN
            IF (p_from IS NOT NULL) THEN
            BEGIN
                IF (v_lane > p_until) THEN
                    LEAVE;
                IF (v_lane = v_done) THEN
                BEGIN
                    v_from = v_lane || ASCII_CHAR(1);
                    v_open = 1;
                    LEAVE;
                END
            END
            v_read = v_read + 1;
            v_state = NULL;
            v_had = 0;
            IF (v_met + v_keep > 0 AND v_group_key IS NOT NULL) THEN
                SELECT NULLIF(state, 'T'), COALESCE(taken, 0) FROM mq_met WHERE group_key = :v_group_key INTO v_state, v_had;
            IF (v_state = 'B') THEN
            BEGIN
                EXECUTE PROCEDURE imq_drop_blocked(p_type);
                v_blocked = 0;
                SELECT state FROM mq_met WHERE group_key = :v_group_key INTO v_state;
            END
            -- The message is gone, or it is active, waits or is dead: its ticket is used up.
            v_drop = IIF(v_group_key IS NULL OR v_waits = 0 AND (
                EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key AND id = :v_ticket)
                OR EXISTS (SELECT * FROM mq_dead WHERE id = :v_ticket)
                OR EXISTS (SELECT * FROM mq_delayed WHERE id = :v_ticket)
                OR v_state IS NULL AND imq_is_active(p_type, v_ticket) = 1
            ), 1, 0);
            IF (v_drop = 1) THEN
                v_locked = 0;
            ELSE IF (v_state = 'K' OR v_state = 'U' AND p_take = 0) THEN
                -- A take leaves the tickets of the groups that it has used: they would be hidden until its handler ends.
                v_drop = v_waits;
            ELSE IF (v_state IS NULL) THEN
            BEGIN
                IF (v_own = 1) THEN
                BEGIN
                    v_weight = 1;
                    SELECT places, rate, rate_seconds FROM imq_group_limits(:p_type, :v_group_key)
                    INTO v_places, v_rate, v_seconds;
                    SELECT COALESCE(weight, 1) FROM mq_queue_group WHERE type = :p_type AND group_key = :v_group_key
                    INTO v_weight;
                END
                v_free = IIF(EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key),
                    imq_group_places(p_type, v_group_key, v_places), 1);
                IF (v_free = 0 AND v_had = 0) THEN
                BEGIN
                    v_state = IIF(v_waits = 1, 'B', 'X');
                    INSERT INTO mq_met (group_key, state, id, priority, run_at)
                    VALUES (:v_group_key, :v_state, :v_ticket, :v_priority, :v_run_at);
                    v_met = v_met + 1;
                    v_blocked = v_blocked + v_waits;
                    IF (v_blocked = c_blocked) THEN
                    BEGIN
                        EXECUTE PROCEDURE imq_drop_blocked(p_type);
                        v_blocked = 0;
                    END
                END
                ELSE
                BEGIN
                    v_taken = 0;
                    v_more = 0;
                    v_done = v_lane;
                    EXECUTE PROCEDURE imq_lock_group(p_type, v_group_key) RETURNING_VALUES v_locked;
                    IF (v_locked = 1) THEN
                    BEGIN
                        -- Read again: the last holder of the stripe may have taken the group's messages.
                        v_free = IIF(EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key),
                            imq_group_places(p_type, v_group_key, v_places), IIF(v_places > 0, v_places, p_size));
                        v_limit = IIF(p_from IS NULL, p_size, IIF(p_rest > 0 AND v_lane = p_from, p_rest, p_turns * v_weight));
                        v_free = MINVALUE(v_free - IIF(v_places > 0, v_had, 0), v_limit, p_size);
                        IF (v_waits = 0 AND v_free > 0) THEN
                        BEGIN
                            -- A transaction sent the message before it could see that the queue is grouped: add it to its
                            -- group now.
                            IF (EXISTS (SELECT * FROM mq_message WHERE id = :v_ticket) AND imq_is_active(p_type, v_ticket) = 0) THEN
                                INSERT INTO mq_grouped (type, group_key, id, attempts)
                                VALUES (:p_type, :v_group_key, :v_ticket, :v_attempts);
                            WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
                                v_locked = 1;
                        END
                        v_tokens = NULL;
                        IF (v_rate > 0 AND v_free > 0) THEN
                        BEGIN
                            EXECUTE PROCEDURE imq_group_tokens(p_type, v_group_key, v_rate, v_seconds)
                            RETURNING_VALUES v_tokens, v_token_at;
                            v_free = CASE WHEN v_tokens IS NULL THEN 0 WHEN v_tokens = 0 THEN 1 ELSE MINVALUE(v_free, v_tokens) END;
                        END
                        v_passed = 0;
                        FOR SELECT g.id, g.attempts
                            FROM mq_grouped AS g
                            WHERE g.type = :p_type AND g.group_key = :v_group_key
                            PLAN (g ORDER mq_grouped_pk)
                            ORDER BY g.type, g.group_key, g.id
                            INTO v_id, attempt
                        DO
                        BEGIN
                            IF (v_taken >= v_free) THEN
                            BEGIN
                                v_more = 1;
                                LEAVE;
                            END
                            BEGIN
                                DELETE FROM mq_grouped WHERE type = :p_type AND group_key = :v_group_key AND id = :v_id;
                                v_mine = ROW_COUNT;
                                IF (v_mine = 1 AND v_tokens = 0) THEN
                                    -- promote brings it back when the group has a token.
                                    INSERT INTO mq_delayed (id, type, run_at, priority, attempts)
                                    SELECT :v_id, :p_type, :v_token_at, m.priority, :attempt FROM mq_message AS m WHERE m.id = :v_id;
                                IF (v_mine = 1 AND (p_take = 0 OR v_tokens = 0)) THEN
                                    INSERT INTO mq_group_lock (type, group_key, id) VALUES (:p_type, :v_group_key, :v_id);
                                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random,
                                    GDSCODE no_cur_rec, GDSCODE unique_key_violation, GDSCODE no_dup
                                DO
                                    v_mine = 0;
                            END
                            v_passed = v_passed + 1 - v_mine;
                            IF (v_mine = 1) THEN
                            BEGIN
                                v_taken = v_taken + 1;
                                IF (v_tokens = 0) THEN
                                    LEAVE;
                                IF (v_taken = 1) THEN
                                    n = n + 1;
                                id = v_id;
                                attempt = attempt + 1;
                                lane = v_lane;
                                turn = (v_taken - 1) / v_weight;
                                rest = MOD(v_limit - v_taken, v_weight);
                                SUSPEND;
                                p_size = p_size - 1;
                            END
                            ELSE IF (v_ordered = 1 OR v_passed = c_locked_messages) THEN
                                LEAVE;
                        END
                        IF (v_tokens > 0 AND v_taken > 0) THEN
                            UPDATE mq_bucket SET full_at = imq_full_after(full_at, :v_rate, :v_seconds, imq_microseconds(), :v_taken)
                            WHERE type = :p_type AND group_key = :v_group_key;
                    END
                    -- A take leaves no row in mq_group_lock: an ordered group that it has emptied may get a message meanwhile.
                    v_more = IIF(v_taken > 0 AND (v_more + v_passed > 0 OR v_tokens = 0), 1, 0);
                    IF (v_taken = 0 OR v_more = 1 OR p_take = 1 AND v_ordered = 1 OR v_keep = 1) THEN
                    BEGIN
                        IF (v_keep = 1) THEN
                            UPDATE OR INSERT INTO mq_met (group_key, state, taken)
                            VALUES (:v_group_key, IIF(:v_more = 1, 'U', 'X'), :v_had + IIF(:v_tokens = 0, 0, :v_taken));
                        ELSE
                            INSERT INTO mq_met (group_key, state) VALUES (:v_group_key, IIF(:v_more = 1, 'U', 'X'));
                        v_met = v_met + 1;
                    END
                    v_drop = IIF(v_taken > 0, 1, 0);
                    v_groups = v_groups + v_drop;
                END
            END
            IF (v_drop = 1) THEN
            BEGIN
                DELETE FROM mq_ready WHERE RDB$DB_KEY = :v_place AND id = :v_ticket;
                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                    v_drop = 0;
            END
            IF (p_size = 0 OR v_groups = c_groups OR v_read = c_tickets) THEN
                LEAVE;
        END
    END
    IF (v_blocked > 0) THEN
        EXECUTE PROCEDURE imq_drop_blocked(p_type);
    -- A group that is not blocked needs a ticket. In an ordered queue the finish of its message issues one, but a take has
    -- no separate finish.
    IF (v_met > 0) THEN
    BEGIN
        IF (p_take = 1 OR v_ordered = 0) THEN
            FOR SELECT group_key FROM mq_met WHERE state = 'U' INTO v_group_key DO
                IF (imq_group_places(p_type, v_group_key, NULL) > 0) THEN
                    EXECUTE PROCEDURE imq_issue_tickets(p_type, v_group_key);
        DELETE FROM mq_met WHERE :v_keep = 0 OR taken IS NULL OR taken = 0;
        IF (v_keep = 1) THEN
            UPDATE mq_met SET state = 'T';
    END
END

-- pick_grouped: take the first messages of groups that are not blocked: one per group in an ordered queue, otherwise as
--               many as the limits per group allow.
-- Arguments:   p_type, p_size, p_take (1: called by take_batch; its own commit finishes the messages, perhaps much later)
-- Returns:     id and attempt (the number of this attempt)
-- Transaction: joins the caller's, which is NO WAIT; the caller fetches all rows
--
-- In a grouped queue a row of mq_ready is a ticket: the group of this message may have a message to claim. Every message
-- brings a ticket, so senders lock nothing. A group has places: one in an ordered queue, otherwise group_max_active. A
-- claim that finds a ticket reads its group. If a place is free, the group's first messages are taken, whichever message
-- the ticket belongs to; a row lock in mq_stripe separates concurrent claims. The group is blocked if no place is free or
-- if its first message waits for a retry or a token. Then the first ticket found stays and the others are dropped, but only
-- while this claim has that ticket and its message locked: so a ticket of an existing message remains, even if consumers
-- finish messages of the group at the same time. A call that unblocks a group issues a new ticket.
--
-- The claim records the groups that it has met in mq_met: U taken in this call; B blocked; K blocked, and its first ticket
-- locked; X leave alone. The table is empty before and after the call. If the call fails, its rows are undone too.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_pick_grouped (
    p_type mq_name,
    p_size integer,
    p_take smallint
)
RETURNS (
    id bigint,
    attempt smallint
)
AS
-- The maximum number of groups per call: a take keeps stripes locked until its handler ends, and they also block other
-- groups.
DECLARE c_groups integer = 250;
DECLARE c_tickets integer = 10000;
DECLARE v_ordered smallint;
DECLARE v_places integer;
DECLARE v_rate integer;
DECLARE v_seconds integer;
DECLARE v_left integer;
DECLARE v_groups integer = 0;
DECLARE v_walked integer = 0;
DECLARE v_ticket bigint;
DECLARE v_priority smallint;
DECLARE v_run_at timestamp;
DECLARE v_attempts smallint;
DECLARE v_group_key mq_name;
DECLARE v_grouped integer;
DECLARE v_met varchar(1) CHARACTER SET ASCII;
DECLARE v_met_id bigint;
DECLARE v_met_priority smallint;
DECLARE v_met_run_at timestamp;
DECLARE v_drop integer;
DECLARE v_locked integer;
BEGIN
    SELECT ordered, IIF(ordered = 1, 1, group_max_active), group_rate, group_rate_seconds FROM imq_policy(:p_type)
    INTO v_ordered, v_places, v_rate, v_seconds;
    v_left = p_size;
    FOR SELECT r.id, r.priority, r.run_at, r.attempts
        FROM mq_ready AS r
        WHERE r.type = :p_type
        PLAN (r ORDER mq_ready_pk)
        ORDER BY r.type, r.priority, r.run_at, r.id
        INTO v_ticket, v_priority, v_run_at, v_attempts AS CURSOR tickets
    DO
    BEGIN
        v_walked = v_walked + 1;
        v_group_key = NULL;
        v_grouped = 0;
        v_met = NULL;
        v_drop = 0;
        SELECT COALESCE(group_key, '') FROM mq_message WHERE id = :v_ticket INTO v_group_key;
        IF (v_group_key IS NULL) THEN
            v_drop = 1;
        ELSE
        BEGIN
            SELECT 1 FROM mq_grouped WHERE type = :p_type AND group_key = :v_group_key AND id = :v_ticket ROWS 1
            INTO v_grouped;
            SELECT state, id, priority, run_at FROM mq_met WHERE group_key = :v_group_key
            INTO v_met, v_met_id, v_met_priority, v_met_run_at;
            IF (v_grouped = 0 AND (
                EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key AND id = :v_ticket)
                OR EXISTS (SELECT * FROM mq_dead WHERE id = :v_ticket)
                OR EXISTS (SELECT * FROM mq_delayed WHERE id = :v_ticket)
                OR v_met IS NULL AND imq_is_active(p_type, v_ticket) = 1
            )) THEN
                v_drop = 1;
            ELSE IF (v_met = 'U') THEN
                -- A take drops only the tickets that it used: others must not be hidden until its handler ends.
                v_drop = IIF(v_grouped = 1 AND p_take = 0, 1, 0);
            ELSE IF (v_met = 'X') THEN
                v_drop = 0;
            -- For a single place use a query: a function call per message costs more.
            ELSE IF (v_places = 1 AND EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key)
                OR v_places <> 1 AND imq_group_places(p_type, v_group_key, v_places) = 0) THEN
            BEGIN
                IF (p_take = 0 AND v_grouped = 1) THEN
                BEGIN
                    IF (v_met IS NULL) THEN
                        INSERT INTO mq_met (group_key, state, id, priority, run_at)
                        VALUES (:v_group_key, 'B', :v_ticket, :v_priority, :v_run_at);
                    ELSE IF (v_met = 'B') THEN
                    BEGIN
                        EXECUTE PROCEDURE imq_lock_ticket(p_type, v_group_key, v_met_id, v_met_priority, v_met_run_at)
                            RETURNING_VALUES v_locked;
                        v_met = IIF(v_locked = 1, 'K', 'X');
                        UPDATE mq_met SET state = :v_met WHERE group_key = :v_group_key;
                    END
                    v_drop = IIF(v_met = 'K', 1, 0);
                END
            END
            ELSE
            BEGIN
                v_met = 'X';
                FOR SELECT id, attempt
                    FROM imq_take_group(:p_type, :v_group_key, :v_left, :p_take, :v_ordered, :v_places, :v_rate, :v_seconds,
                        :v_ticket, :v_priority, :v_run_at, :v_attempts, 1 - :v_grouped)
                    INTO id, attempt
                DO
                BEGIN
                    v_met = 'U';
                    IF (id IS NOT NULL) THEN
                    BEGIN
                        v_left = v_left - 1;
                        SUSPEND;
                    END
                END
                UPDATE OR INSERT INTO mq_met (group_key, state) VALUES (:v_group_key, :v_met) MATCHING (group_key);
                v_drop = IIF(v_met = 'U', 1, 0);
                v_groups = v_groups + v_drop;
            END
        END
        IF (v_drop = 1) THEN
        BEGIN
            DELETE FROM mq_ready WHERE CURRENT OF tickets;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_drop = 0;
        END
        IF (v_left = 0 OR v_groups = c_groups OR v_walked = c_tickets) THEN
            LEAVE;
    END
    -- A group that is not blocked needs a ticket. In an ordered queue the finish of its message issues one, but a take has
    -- no separate finish.
    IF (p_take = 1 OR v_ordered = 0) THEN
        FOR SELECT group_key FROM mq_met WHERE state = 'U' INTO v_group_key DO
            IF (imq_group_places(p_type, v_group_key, v_places) > 0) THEN
                EXECUTE PROCEDURE imq_issue_tickets(p_type, v_group_key);
    DELETE FROM mq_met;
END^

SET TERM ; ^

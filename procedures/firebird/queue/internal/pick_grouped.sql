-- pick_grouped: take the first messages of groups that may go on: one a group in an ordered queue, else as many as there are
--               places and tokens.
-- Arguments:   p_type, p_size, p_take (1: the messages are finished by the caller's own commit)
-- Returns:     id and attempt (the number of this attempt)
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT; the caller fetches all rows
-- Example:     FOR SELECT id, attempt FROM mq_pick_grouped('invoice', 10, 0) INTO v_id, v_attempt DO ...
--
-- A row of mq_ready is a ticket here: 'the group of this message has something to do', and every message brings one, so that
-- senders lock nothing. A claim meets a ticket and reads its group. It has places: the group's first messages are taken, whichever
-- ticket it was; two claims at one moment are kept apart by the row of mq_stripe. All places are taken, or its first message waits
-- for a token or its next attempt: the first ticket that is met stays; the others are dropped, but only while that first one and
-- its message are locked here, so that a ticket of a message that is there stays whatever the group's consumers do at this
-- moment. The call that ends a group's work issues a new one.
--
-- What was met is noted in mq_met: U taken in this call, B at work, K at work and its first ticket locked, X to be left alone.
-- The table is empty before and after: a call that fails is undone, its rows too.
--
-- It is long because each case of a ticket met is a branch of its own.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_pick_grouped (
    p_type mq_name,
    p_size integer,
    p_take smallint
)
RETURNS (
    id bigint,
    attempt smallint
)
AS
-- A take keeps its stripes until its handler is done, and with them other groups that share them.
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
    SELECT ordered, IIF(ordered = 1, 1, group_max_active), group_rate, group_rate_seconds FROM mq_policy(:p_type)
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
                OR v_met IS NULL AND mq_is_active(p_type, v_ticket) = 1
            )) THEN
                v_drop = 1;
            ELSE IF (v_met = 'U') THEN
                -- A take drops only the tickets that led it there: the others must not be hidden until its handler is done.
                v_drop = IIF(v_grouped = 1 AND p_take = 0, 1, 0);
            ELSE IF (v_met = 'X') THEN
                v_drop = 0;
            -- One place: a function would cost each message more than the question.
            ELSE IF (v_places = 1 AND EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key)
                OR v_places <> 1 AND mq_group_places(p_type, v_group_key, v_places) = 0) THEN
            BEGIN
                IF (p_take = 0 AND v_grouped = 1) THEN
                BEGIN
                    IF (v_met IS NULL) THEN
                        INSERT INTO mq_met (group_key, state, id, priority, run_at)
                        VALUES (:v_group_key, 'B', :v_ticket, :v_priority, :v_run_at);
                    ELSE IF (v_met = 'B') THEN
                    BEGIN
                        EXECUTE PROCEDURE mq_lock_ticket(p_type, v_group_key, v_met_id, v_met_priority, v_met_run_at)
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
                    FROM mq_take_group(:p_type, :v_group_key, :v_left, :p_take, :v_ordered, :v_places, :v_rate, :v_seconds,
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
    -- A group that can go on needs a ticket. In an ordered queue the end of its message issues one, but for a take.
    IF (p_take = 1 OR v_ordered = 0) THEN
        FOR SELECT group_key FROM mq_met WHERE state = 'U' INTO v_group_key DO
            IF (mq_group_places(p_type, v_group_key, v_places) > 0) THEN
                EXECUTE PROCEDURE mq_issue_tickets(p_type, v_group_key);
    DELETE FROM mq_met;
END^

SET TERM ; ^

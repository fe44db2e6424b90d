-- take_group: take the first messages of a group that its places and tokens allow, unless another claim has locked the
--             group.
-- Arguments:   p_type, p_group_key ('' for none), p_size (maximum number of messages), p_take (1: called by take_batch; see
--              pick_grouped), p_ordered, p_places (1 in an ordered queue; 0: no limit), p_rate and p_seconds (the policy),
--              p_ticket, p_priority, p_run_at and p_attempts (the ticket that was found), p_joins (1: its message is not in
--              mq_grouped)
-- Returns:     id and attempt (the number of this attempt), one row per message; one row without an id when the first
--              message was delayed until the next token; no rows when there is nothing to take or another session has
--              locked the group
-- Transaction: joins the caller's, which is NO WAIT; keeps the group's stripe locked; the caller fetches all rows
--
-- A message that another transaction is cancelling or purging is skipped; in an ordered queue it blocks its group.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_take_group (
    p_type mq_name,
    p_group_key mq_name,
    p_size integer,
    p_take smallint,
    p_ordered smallint,
    p_places integer,
    p_rate integer,
    p_seconds integer,
    p_ticket bigint,
    p_priority smallint,
    p_run_at timestamp,
    p_attempts smallint,
    p_joins smallint
)
RETURNS (
    id bigint,
    attempt smallint
)
AS
DECLARE c_locked_messages integer = 1000;
DECLARE v_locked integer;
DECLARE v_tokens integer;
DECLARE v_token_at timestamp;
DECLARE v_id bigint;
DECLARE v_n integer = 0;
DECLARE v_passed integer = 0;
DECLARE v_mine integer;
DECLARE v_priority smallint;
DECLARE v_run_at timestamp;
BEGIN
    EXECUTE PROCEDURE imq_lock_group(p_type, p_group_key) RETURNING_VALUES v_locked;
    IF (v_locked = 0) THEN
        EXIT;
    -- Read again: the last holder of the stripe may have taken the group's messages.
    IF (EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :p_group_key)) THEN
        p_size = MINVALUE(p_size, imq_group_places(p_type, p_group_key, p_places));
    ELSE IF (p_places > 0) THEN
        p_size = MINVALUE(p_size, p_places);
    IF (p_size = 0) THEN
        EXIT;
    IF (p_joins = 1) THEN
    BEGIN
        -- A transaction sent the message before it could see that the queue is grouped: add it to its group now.
        IF (EXISTS (SELECT * FROM mq_message WHERE id = :p_ticket) AND imq_is_active(p_type, p_ticket) = 0
            AND NOT EXISTS (SELECT * FROM mq_delayed WHERE id = :p_ticket)
            AND NOT EXISTS (SELECT * FROM mq_dead WHERE id = :p_ticket)) THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, :p_group_key, :p_ticket, :p_attempts);
        WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
            v_locked = 1;
    END
    IF (p_rate > 0) THEN
    BEGIN
        EXECUTE PROCEDURE imq_group_tokens(p_type, p_group_key, p_rate, p_seconds) RETURNING_VALUES v_tokens, v_token_at;
        IF (v_tokens IS NULL) THEN
            EXIT;
        p_size = IIF(v_tokens = 0, 1, MINVALUE(p_size, v_tokens));
    END
    FOR SELECT g.id, g.attempts
        FROM mq_grouped AS g
        WHERE g.type = :p_type AND g.group_key = :p_group_key
        PLAN (g ORDER mq_grouped_pk)
        ORDER BY g.type, g.group_key, g.id
        INTO v_id, attempt
    DO
    BEGIN
        BEGIN
            DELETE FROM mq_grouped WHERE type = :p_type AND group_key = :p_group_key AND id = :v_id;
            v_mine = ROW_COUNT;
            IF (v_mine = 1 AND v_tokens = 0) THEN
                EXECUTE PROCEDURE imq_put_off(p_type, p_group_key, v_id, attempt, v_token_at);
            ELSE IF (v_mine = 1 AND p_take = 0) THEN
                INSERT INTO mq_group_lock (type, group_key, id) VALUES (:p_type, :p_group_key, :v_id);
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
                GDSCODE unique_key_violation, GDSCODE no_dup
            DO
                v_mine = 0;
        END
        v_n = v_n + v_mine;
        v_passed = v_passed + 1 - v_mine;
        IF (v_mine = 1) THEN
        BEGIN
            IF (p_ordered = 0) THEN
                -- Its tickets are used up. The caller handles the one that was found.
                FOR SELECT r.priority, r.run_at
                    FROM mq_ready AS r
                    WHERE r.type = :p_type AND r.id = :v_id
                    PLAN (r ORDER mq_ready_ring)
                    ORDER BY r.type, r.id
                    INTO v_priority, v_run_at AS CURSOR tickets
                DO
                BEGIN
                    IF (v_id <> p_ticket OR v_priority <> p_priority OR v_run_at <> p_run_at) THEN
                        DELETE FROM mq_ready WHERE CURRENT OF tickets;
                    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                        v_run_at = NULL;
                END
            id = IIF(v_tokens = 0, NULL, v_id);
            attempt = attempt + 1;
            SUSPEND;
        END
        IF (v_n = p_size OR p_ordered = 1 OR v_passed = c_locked_messages) THEN
            LEAVE;
    END
    IF (p_rate > 0 AND v_tokens > 0 AND v_n > 0) THEN
        EXECUTE PROCEDURE imq_spend_of_group(p_type, p_group_key, v_n, p_rate, p_seconds);
END^

SET TERM ; ^

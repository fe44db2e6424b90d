-- take_head: take the first message of a group of an ordered queue that is not at work.
-- Arguments:   p_type, p_group_key ('' for none), p_joins and p_attempts (a message that has a ticket and is not in its group; NULL:
--              there is none), p_take (1: the message is finished by the caller's own commit)
-- Returns:     id and attempt (the number of this attempt); NULL when another claim or call is at the group
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT; keeps the group's stripe
-- Example:     EXECUTE PROCEDURE mq_take_head('invoice', 'customer-7', NULL, 0, 0) RETURNING_VALUES v_id, v_attempt;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_take_head (
    p_type mq_name,
    p_group_key mq_name,
    p_joins bigint,
    p_attempts smallint,
    p_take smallint
)
RETURNS (
    id bigint,
    attempt smallint
)
AS
DECLARE v_locked integer;
BEGIN
    EXECUTE PROCEDURE mq_lock_group(p_type, p_group_key) RETURNING_VALUES v_locked;
    -- Read again: the last transaction that had the stripe may have taken the group.
    IF (v_locked = 0 OR EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :p_group_key)) THEN
        EXIT;
    IF (EXISTS (SELECT * FROM mq_message WHERE id = :p_joins)) THEN
    BEGIN
        -- Sent by a transaction that began before the queue was made ordered: it joins its group now.
        INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, :p_group_key, :p_joins, :p_attempts);
        WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
            v_locked = 1;
    END
    SELECT g.id, g.attempts + 1 AS attempt
    FROM mq_grouped AS g
    WHERE g.type = :p_type AND g.group_key = :p_group_key
    PLAN (g ORDER mq_grouped_pk)
    ORDER BY g.type, g.group_key, g.id
    ROWS 1
    INTO id, attempt;
    IF (id IS NOT NULL) THEN
    BEGIN
        -- The group of a head that is being cancelled or purged is passed over.
        DELETE FROM mq_grouped WHERE type = :p_type AND group_key = :p_group_key AND id = :id;
        IF (ROW_COUNT = 0) THEN
            id = NULL;
        ELSE IF (p_take = 0) THEN
            INSERT INTO mq_group_lock (type, group_key, id) VALUES (:p_type, :p_group_key, :id);
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
            GDSCODE unique_key_violation, GDSCODE no_dup
        DO
            id = NULL;
    END
END^

SET TERM ; ^

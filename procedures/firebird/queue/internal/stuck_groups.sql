-- stuck_groups: groups of a grouped queue that have something due, are not at work, and that no claim would ever meet.
-- Arguments:   p_type, p_most (at most so many)
-- Returns:     their group keys ('' for none); no row when all is well
-- Errors:      none
-- Transaction: reads only, and up to 10,000 entries of each table
-- Example:     SELECT * FROM mq_stuck_groups('invoice', 1000);
--
-- A ticket is searched among those of the group's own messages, by their ids: each message brings one.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_stuck_groups (
    p_type mq_name,
    p_most integer
)
RETURNS (
    group_key mq_name
)
AS
DECLARE c_entries integer = 10000;
DECLARE v_id bigint;
DECLARE v_lock bigint;
DECLARE v_key mq_name;
DECLARE v_head bigint;
DECLARE v_locks integer = 1000;
DECLARE v_free smallint = 0;
BEGIN
    FOR SELECT g.group_key, g.id
        FROM mq_grouped AS g
        WHERE g.type = :p_type
        PLAN (g ORDER mq_grouped_pk)
        ORDER BY g.type, g.group_key, g.id
        ROWS :c_entries
        INTO v_key, v_id
    DO
    BEGIN
        IF (v_key IS DISTINCT FROM group_key) THEN
        BEGIN
            -- The group before had no ticket. On 3.0 its last message may have been taken meanwhile.
            IF (v_free = 1 AND EXISTS (
                SELECT * FROM mq_grouped WHERE type = :p_type AND group_key = :group_key AND id = :v_head
            )) THEN
            BEGIN
                SUSPEND;
                p_most = p_most - 1;
                IF (p_most <= 0) THEN
                    EXIT;
            END
            group_key = v_key;
            v_head = v_id;
            v_free = 1;
            v_lock = NULL;
            SELECT id FROM mq_group_lock WHERE type = :p_type AND group_key = :v_key ROWS 1 INTO v_lock;
            -- At work: somebody holds its head, or that waits for its next attempt.
            IF (v_lock IS NOT NULL) THEN
                v_locks = v_locks - 1;
            IF (v_lock IS NOT NULL AND (v_locks < 0
                OR EXISTS (SELECT * FROM mq_claimed AS c JOIN mq_batch AS b ON b.batch_key = c.batch_key
                    WHERE b.type = :p_type AND c.id = :v_lock)
                OR EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND id = :v_lock)
                OR EXISTS (SELECT * FROM mq_delayed WHERE id = :v_lock)
            )) THEN
                v_free = 0;
        END
        IF (v_free = 1 AND v_lock IS NULL AND EXISTS (
            SELECT * FROM mq_ready AS r WHERE r.type = :p_type AND r.id = :v_id PLAN (r INDEX (mq_ready_ring))
        )) THEN
            v_free = 0;
    END
    IF (v_free = 1 AND EXISTS (SELECT * FROM mq_grouped WHERE type = :p_type AND group_key = :group_key AND id = :v_head)) THEN
        SUSPEND;
END^

SET TERM ; ^

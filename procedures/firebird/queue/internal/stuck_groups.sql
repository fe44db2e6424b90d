-- stuck_groups: groups that have due messages and are not blocked, but have no ticket. Claims do not find such groups, and
--               there should be none.
-- Returns:     the group keys ('' for messages without one); no rows when all is well
-- Transaction: reads only, up to 10,000 entries of each table
--
-- The ticket is searched by the ids of the group's own messages. A group is not stuck if its first message waits for a
-- retry or a token, or if a dead letter stops it. A place counts as taken if a batch holds the message.
CREATE OR ALTER PROCEDURE imq_stuck_groups (p_type mq_name, p_most integer)
RETURNS (group_key mq_name)
AS
DECLARE c_entries integer = 10000;
DECLARE v_id bigint; DECLARE v_lock bigint; DECLARE v_head bigint;
DECLARE v_key mq_name;
DECLARE v_locks integer = 1000;
DECLARE v_places integer; DECLARE v_taken integer; DECLARE v_rows integer;
DECLARE v_free smallint = 0;
DECLARE v_stops smallint;
BEGIN
    SELECT dead_stops_group FROM imq_policy(:p_type) INTO v_stops;
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
            -- The previous group had no ticket. On Firebird 3.0 its last message may have been taken meanwhile.
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
            SELECT places FROM imq_group_limits(:p_type, :v_key) INTO v_places;
            v_free = 1;
            v_taken = 0;
            v_rows = 0;
            FOR SELECT l.id FROM mq_group_lock AS l WHERE l.type = :p_type AND l.group_key = :v_key INTO v_lock DO
            BEGIN
                v_locks = v_locks - 1;
                v_rows = v_rows + 1;
                IF (v_locks < 0 OR EXISTS (SELECT * FROM mq_delayed WHERE id = :v_lock)
                    OR v_stops = 1 AND EXISTS (SELECT * FROM mq_dead WHERE id = :v_lock)) THEN
                    v_free = 0;
                ELSE
                    v_taken = v_taken + imq_is_active(p_type, v_lock);
                IF (v_free = 0) THEN
                    LEAVE;
            END
            IF (v_places > 0 AND v_taken >= v_places) THEN
                v_free = 0;
        END
        -- A ticket helps only if claims see a free place.
        IF (v_free = 1 AND (v_places = 0 OR v_rows < v_places) AND EXISTS (
            SELECT * FROM imq_find_ready(:p_type, :v_id)
        )) THEN
            v_free = 0;
    END
    IF (v_free = 1 AND EXISTS (SELECT * FROM mq_grouped WHERE type = :p_type AND group_key = :group_key AND id = :v_head)) THEN
        SUSPEND;
END

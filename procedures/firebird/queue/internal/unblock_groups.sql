-- unblock_groups: unblock up to 1,000 groups that are stuck. There should be none.
CREATE OR ALTER PROCEDURE imq_unblock_groups (p_type mq_name)
AS
DECLARE v_repaired integer = 0;
DECLARE v_grouped smallint; DECLARE v_stops smallint;
DECLARE v_group_key mq_name;
BEGIN
    SELECT grouped, dead_stops_group FROM imq_policy(:p_type) INTO v_grouped, v_stops;
    IF (v_grouped = 1) THEN
        FOR SELECT group_key FROM imq_stuck_groups(:p_type, 1000) INTO v_group_key DO
        BEGIN
            DELETE FROM mq_group_lock AS l
            WHERE l.type = :p_type AND l.group_key = :v_group_key AND imq_is_active(:p_type, l.id) = 0
                AND NOT EXISTS (SELECT * FROM mq_delayed AS d WHERE d.id = l.id)
                AND NOT (:v_stops = 1 AND EXISTS (SELECT * FROM mq_dead AS e WHERE e.id = l.id));
            EXECUTE PROCEDURE imq_issue_tickets(p_type, v_group_key);
            v_repaired = v_repaired + 1;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                -- The message is active after all.
                v_group_key = NULL;
        END
    IF (v_repaired > 0) THEN
    BEGIN
        EXECUTE PROCEDURE imq_lower_mark(p_type);
        EXECUTE PROCEDURE imq_wake(p_type);
    END
END

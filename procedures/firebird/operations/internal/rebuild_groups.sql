-- rebuild_groups: make groups claimable after a change of limits per group: issue tickets, and end waits for tokens.
-- Transaction: joins the caller's; skips messages that a claim is promoting
CREATE OR ALTER PROCEDURE imq_rebuild_groups (p_type mq_name)
AS
DECLARE v_group_key mq_name; DECLARE v_last mq_name;
DECLARE v_id bigint;
BEGIN
    -- A claim that began with the old limits may be dropping tickets at this moment: claims of the next seconds repair
    -- this, see pick.
    UPDATE mq_queue SET changed_at = mq_utc_now() WHERE type = :p_type;
    FOR SELECT l.group_key, l.id
        FROM mq_group_lock AS l
        WHERE l.type = :p_type
        PLAN (l ORDER mq_group_lock_pk)
        ORDER BY l.type, l.group_key, l.id
        INTO v_group_key, v_id
    DO
    BEGIN
        BEGIN
            UPDATE mq_delayed SET run_at = mq_utc_now() WHERE id = :v_id AND error IS NULL AND run_at > mq_utc_now();
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_id = NULL;
        END
        IF (v_group_key IS DISTINCT FROM v_last) THEN
            EXECUTE PROCEDURE imq_issue_tickets(p_type, v_group_key);
        v_last = v_group_key;
    END
    EXECUTE PROCEDURE imq_lower_mark(p_type);
END

-- state_of: the state of a message: N, A, E, or C when it is archived; NULL when there is no such message.
CREATE OR ALTER FUNCTION imq_state_of (p_id bigint)
RETURNS varchar(1) CHARACTER SET ASCII
AS
DECLARE v_state varchar(1) CHARACTER SET ASCII;
BEGIN
    SELECT CASE
            WHEN EXISTS (SELECT * FROM mq_dead AS e WHERE e.id = m.id) THEN 'E'
            WHEN EXISTS (SELECT * FROM mq_delayed AS d WHERE d.id = m.id) THEN 'N'
            -- An active message of a group; an old ticket of it may remain.
            WHEN EXISTS (
                SELECT * FROM mq_group_lock AS l
                WHERE l.type = m.type AND l.group_key = COALESCE(m.group_key, '') AND l.id = m.id
            ) THEN 'A'
            WHEN EXISTS (
                    SELECT * FROM mq_grouped AS g
                    WHERE g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
                ) THEN 'N'
            WHEN EXISTS (SELECT * FROM imq_find_ready(m.type, m.id))
                AND ((SELECT q.grouped FROM imq_policy(m.type) AS q) = 0 OR imq_is_active(m.type, m.id) = 0) THEN 'N'
            -- Do not search for its claim: a message in no other table is active.
            ELSE 'A'
        END
    FROM mq_message AS m WHERE m.id = :p_id INTO v_state;
    IF (v_state IS NULL) THEN
        SELECT 'C' FROM mq_archive AS a WHERE a.id = :p_id INTO v_state;
    RETURN v_state;
END

-- get_result: a message's state, its result, and the error of its last failed attempt.
-- Arguments:   p_id (the message)
-- Returns:     state (N new, A active, E dead, C archived), result (NULL: none was stored), error (while the message is
--              delayed or dead, else NULL); no row when there is no such message, live or archived
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq_get_result(17);

CREATE OR ALTER PROCEDURE mq_get_result (
    p_id bigint
)
RETURNS (state varchar(1) CHARACTER SET UTF8, result mq_text, error mq_error)
AS
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_record_version;
    SELECT CASE
            WHEN e.id IS NOT NULL THEN 'E'
            WHEN d.id IS NOT NULL THEN 'N'
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
        END, r.result, COALESCE(e.error, d.error)
    FROM mq_message AS m
    LEFT JOIN mq_dead AS e ON e.id = m.id
    LEFT JOIN mq_delayed AS d ON d.id = m.id
    LEFT JOIN mq_result AS r ON r.id = m.id
    WHERE m.id = :p_id
    INTO state, result, error;
    IF (state IS NULL) THEN
        SELECT 'C', a.result FROM mq_archive AS a WHERE a.id = :p_id INTO state, result;
    IF (state IS NOT NULL) THEN
        SUSPEND;
END

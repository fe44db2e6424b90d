-- get_result: what became of a message.
-- Arguments:   p_id
-- Returns:     state (N new, A active, C completed, E dead), result and error, or no row
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq_get_result(17);

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_get_result (
    p_id bigint
)
RETURNS (
    state varchar(1) CHARACTER SET UTF8,
    result mq_text,
    error mq_error
)
AS
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE mq_require_record_version;
    SELECT CASE
            WHEN e.id IS NOT NULL THEN 'E'
            WHEN d.id IS NOT NULL THEN 'N'
            -- A message of a group that is at work, of which an old ticket may be left.
            WHEN EXISTS (
                SELECT * FROM mq_group_lock AS l
                WHERE l.type = m.type AND l.group_key = COALESCE(m.group_key, '') AND l.id = m.id
            ) THEN 'A'
            WHEN EXISTS (
                    SELECT * FROM mq_grouped AS g
                    WHERE g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
                ) THEN 'N'
            WHEN EXISTS (SELECT * FROM mq_ready AS r WHERE r.type = m.type AND r.id = m.id PLAN (r INDEX (mq_ready_ring)))
                AND ((SELECT q.grouped FROM mq_policy(m.type) AS q) = 0 OR mq_is_active(m.type, m.id) = 0) THEN 'N'
            -- No search for the claim that holds it: it is nowhere else.
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
END^

SET TERM ; ^

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
    state = imq_state_of(p_id);
    SELECT r.result, COALESCE(e.error, d.error)
    FROM mq_message AS m
    LEFT JOIN mq_dead AS e ON e.id = m.id
    LEFT JOIN mq_delayed AS d ON d.id = m.id
    LEFT JOIN mq_result AS r ON r.id = m.id
    WHERE m.id = :p_id
    INTO result, error;
    IF (state = 'C') THEN
        SELECT a.result FROM mq_archive AS a WHERE a.id = :p_id INTO result;
    IF (state IS NOT NULL) THEN
        SUSPEND;
END

-- find_queues: list the names of queues that have settings, a schedule, or a message that is new or active.
-- Arguments:   p_prefix (how the names begin, 1 to 200 characters; NULL: all), p_after (only names after this one, 1 to 200
--              characters; NULL: from the first), p_size (1 to 10,000; NULL: 20)
-- Returns:     type: up to p_size names in the order of their code points
-- Errors:      50002 invalid_argument
-- Transaction: reads only, a few index entries per queue, however many messages it has
-- Example:     SELECT type FROM mq_find_queues('mail.');
CREATE OR ALTER PROCEDURE mq_find_queues (
    p_prefix mq_argument = NULL,
    p_after mq_argument = NULL,
    p_size bigint = NULL
)
RETURNS (type mq_name)
AS
DECLARE v_prefix mq_name; DECLARE v_first mq_name; DECLARE v_from mq_name; DECLARE v_past mq_name;
DECLARE v_left integer;
BEGIN
    EXECUTE PROCEDURE imq_require_name('prefix', p_prefix, 1);
    EXECUTE PROCEDURE imq_require_name('after', p_after, 1);
    EXECUTE PROCEDURE imq_require_record_version;
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    v_prefix = COALESCE(p_prefix, '');
    -- No name with this prefix sorts before it.
    v_first = RPAD(v_prefix, 200, ASCII_CHAR(0));
    v_past = p_after;
    v_left = COALESCE(p_size, 20);
    -- From each name to the next one: a scan would read all messages. See count_types for the bounds.
    WHILE (v_left > 0) DO
    BEGIN
        v_from = CASE
            WHEN v_past IS NULL THEN v_first
            WHEN CHAR_LENGTH(v_past) < 200 THEN MAXVALUE(v_first, RPAD(v_past, 199) || '!')
            ELSE MAXVALUE(v_first, v_past)
        END;
        v_past = COALESCE(v_past, v_first);
        type = NULL;
        SELECT MIN(t.type)
        FROM (
            SELECT type FROM (SELECT FIRST 1 q.type FROM mq_queue AS q
                WHERE q.type >= :v_from AND q.type <> :v_past AND CHAR_LENGTH(q.type) > 0
                PLAN (q ORDER mq_queue_pk) ORDER BY q.type)
            UNION ALL
            SELECT type FROM (SELECT FIRST 1 r.type FROM mq_ready AS r WHERE r.type >= :v_from AND r.type <> :v_past
                PLAN (r ORDER mq_ready_pk) ORDER BY r.type, r.priority, r.run_at, r.id)
            UNION ALL
            SELECT type FROM (SELECT FIRST 1 d.type FROM mq_delayed AS d WHERE d.type >= :v_from AND d.type <> :v_past
                PLAN (d ORDER mq_delayed_due) ORDER BY d.type, d.run_at, d.id)
            UNION ALL
            SELECT type FROM (SELECT FIRST 1 b.type FROM mq_batch AS b WHERE b.type >= :v_from AND b.type <> :v_past
                PLAN (b ORDER mq_batch_lease) ORDER BY b.type, b.lease_until)
            UNION ALL
            SELECT imq_next_scheduled(:v_from, :v_past) FROM rdb$database
        ) AS t
        INTO type;
        IF (type IS NULL OR LEFT(type, CHAR_LENGTH(v_prefix)) > v_prefix) THEN
            LEAVE;
        v_past = type;
        IF (type STARTING WITH v_prefix) THEN
        BEGIN
            SUSPEND;
            v_left = v_left - 1;
        END
    END
END

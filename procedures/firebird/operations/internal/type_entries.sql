-- type_entries: entries of one of the queue's tables in the order of their types, from a type on.
-- Arguments:   p_table (ready, grouped, delayed, batch or dead), p_from (the first type), p_past (a type to leave out), p_now
-- Returns:     type, messages (how many the entry holds), is_first (1: counted as first_count by count_types), run_at (NULL where
--              its age does not matter)
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT type, messages FROM mq_type_entries('ready', 'email', '', mq_utc_now());

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_type_entries (
    p_table varchar(7) CHARACTER SET ASCII,
    p_from mq_name,
    p_past mq_name,
    p_now timestamp
)
RETURNS (
    type mq_name,
    messages bigint,
    is_first smallint,
    run_at timestamp
)
AS
BEGIN
    messages = 1;
    is_first = 1;
    IF (p_table = 'ready') THEN
        FOR SELECT r.type, r.run_at FROM mq_ready AS r WHERE r.type >= :p_from AND r.type <> :p_past
            PLAN (r ORDER mq_ready_pk) ORDER BY r.type, r.priority, r.run_at, r.id
            INTO type, run_at
        DO
            SUSPEND;
    ELSE IF (p_table = 'grouped') THEN
        FOR SELECT g.type, m.run_at FROM mq_grouped AS g LEFT JOIN mq_message AS m ON m.id = g.id
            WHERE g.type >= :p_from AND g.type <> :p_past
            PLAN JOIN (g ORDER mq_grouped_pk, m INDEX (mq_message_pk)) ORDER BY g.type, g.group_key, g.id
            INTO type, run_at
        DO
            SUSPEND;
    ELSE IF (p_table = 'delayed') THEN
        FOR SELECT d.type, IIF(d.run_at <= :p_now, 1, 0), IIF(d.run_at <= :p_now, d.run_at, NULL)
            FROM mq_delayed AS d WHERE d.type >= :p_from AND d.type <> :p_past
            PLAN (d ORDER mq_delayed_due) ORDER BY d.type, d.run_at, d.id
            INTO type, is_first, run_at
        DO
            SUSPEND;
    ELSE IF (p_table = 'batch') THEN
        FOR SELECT b.type, IIF(b.id IS NULL, (SELECT COUNT(*) FROM mq_claimed AS c WHERE c.batch_key = b.batch_key), 1),
                IIF(b.lease_until > :p_now, 1, 0)
            FROM mq_batch AS b WHERE b.type >= :p_from AND b.type <> :p_past
            PLAN (b ORDER mq_batch_lease) ORDER BY b.type, b.lease_until
            INTO type, messages, is_first
        DO
            SUSPEND;
    ELSE
        FOR SELECT e.type FROM mq_dead AS e WHERE e.type >= :p_from AND e.type <> :p_past
            PLAN (e ORDER mq_dead_age) ORDER BY e.type, e.died_at, e.id
            INTO type
        DO
            SUSPEND;
END^

SET TERM ; ^

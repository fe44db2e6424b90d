-- read_tickets: the tickets of a grouped queue in claim order, or from the lane p_from on; nothing is changed or locked.
-- Returns:     group_key (NULL: the message is gone), waits (1: the message is in mq_grouped), place (the RDB$DB_KEY)
CREATE OR ALTER PROCEDURE imq_read_tickets (p_type mq_name, p_from varchar(821) CHARACTER SET OCTETS)
RETURNS (
    id bigint, priority smallint, run_at timestamp, attempts smallint, lane mq_lane, group_key mq_name, waits smallint,
    place char(8) CHARACTER SET OCTETS
)
AS
BEGIN
    IF (p_from IS NULL) THEN
        FOR SELECT r.id, r.priority, r.run_at, r.attempts, r.lane, IIF(m.id IS NULL, NULL, COALESCE(m.group_key, '')),
                IIF(g.id IS NULL, 0, 1), r.RDB$DB_KEY
            FROM mq_ready AS r
            LEFT JOIN mq_message AS m ON m.id = r.id
            LEFT JOIN mq_grouped AS g ON g.type = r.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = r.id
            WHERE r.type = :p_type
            PLAN JOIN (JOIN (r ORDER mq_ready_pk, m INDEX (mq_message_pk)), g INDEX (mq_grouped_pk))
            ORDER BY r.type, r.priority, r.run_at, r.id
            INTO id, priority, run_at, attempts, lane, group_key, waits, place
        DO
            SUSPEND;
    ELSE
        FOR SELECT r.id, r.priority, r.run_at, r.attempts, r.lane, IIF(m.id IS NULL, NULL, COALESCE(m.group_key, '')),
                IIF(g.id IS NULL, 0, 1), r.RDB$DB_KEY
            FROM mq_ready AS r
            LEFT JOIN mq_message AS m ON m.id = r.id
            LEFT JOIN mq_grouped AS g ON g.type = r.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = r.id
            WHERE r.type = :p_type AND r.lane >= :p_from
            PLAN JOIN (JOIN (r ORDER mq_ready_lane, m INDEX (mq_message_pk)), g INDEX (mq_grouped_pk))
            ORDER BY r.type, r.lane, r.id
            INTO id, priority, run_at, attempts, lane, group_key, waits, place
        DO
            SUSPEND;
END

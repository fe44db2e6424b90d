-- find_ready: the rows of a message in mq_ready, without locks: one, or the tickets of a grouped queue.
--
-- A sender or a claim may not have seen yet that the queue has become fair, or fair no more: then the lane is not the one
-- that the queue uses now.
CREATE OR ALTER PROCEDURE imq_find_ready (p_type mq_name, p_id bigint)
RETURNS (run_at timestamp, place char(8) CHARACTER SET OCTETS)
AS
BEGIN
    FOR SELECT r.run_at, r.RDB$DB_KEY
        FROM mq_ready AS r
        WHERE r.type = :p_type AND r.id = :p_id AND (r.lane IS NULL OR r.lane = (
            SELECT CAST(LPAD(m.priority + 32768, 5, '0') || COALESCE(m.group_key, '') AS mq_lane) FROM mq_message AS m WHERE m.id = :p_id
        ))
        PLAN (r INDEX (mq_ready_lane, mq_ready_lane))
        INTO run_at, place
    DO
        SUSPEND;
END

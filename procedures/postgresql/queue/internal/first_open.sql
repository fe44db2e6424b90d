-- first_open: the position of the first ticket of an ordered queue whose group is not blocked.
-- Returns: priority, run_at, id; NULL when the 250th ticket or one before it may be that
--
-- One hash table of the blocked groups: a search per ticket would take five times as long. work_mem only lets the planner
-- choose it.
CREATE OR REPLACE FUNCTION mq_internal.first_open(
    p_type text, OUT priority integer, OUT run_at timestamptz, OUT id bigint
)
LANGUAGE plpgsql SET work_mem = '256MB' AS $$
#variable_conflict use_column
BEGIN
    IF EXISTS (
        SELECT FROM (SELECT lane FROM mq.ready WHERE type = p_type ORDER BY type, priority, run_at, id OFFSET 250 LIMIT 1) AS t
        CROSS JOIN LATERAL (SELECT FROM mq.group_lock WHERE type = p_type AND group_key = right(t.lane, -5) LIMIT 1) AS l
    ) THEN
        SELECT r.priority, r.run_at, r.id INTO first_open.priority, first_open.run_at, first_open.id
        FROM mq.ready AS r
        WHERE r.type = p_type
            AND (r.lane IS NULL OR right(r.lane, -5) NOT IN (SELECT l.group_key FROM mq.group_lock AS l WHERE l.type = p_type))
        ORDER BY r.type, r.priority, r.run_at, r.id
        LIMIT 1;
        IF NOT FOUND THEN
            SELECT 32767, 'infinity', 9223372036854775807 INTO first_open.priority, first_open.run_at, first_open.id;
        END IF;
    END IF;
END
$$;

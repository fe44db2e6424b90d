-- take_ring: delete ready messages of a ring in order of id, and skip messages that another transaction has locked.
-- Arguments: p_after and p_until (ids above p_after, up to p_until)
-- Returns: ids and attempts (the number of the new attempt), parallel arrays; NULL when there are none
-- Transaction: never waits for another claim
CREATE OR REPLACE FUNCTION mq_internal.take_ring(
    p_type text, p_after bigint, p_until bigint, p_size bigint, OUT ids bigint[], OUT attempts smallint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_rows tid[];
BEGIN
    SELECT array_agg(r.ctid), array_agg(r.id), array_agg((r.attempts + 1)::smallint) INTO v_rows, ids, attempts
    FROM (
        SELECT q.ctid, q.id, q.attempts FROM mq.ready AS q
        WHERE q.type = p_type AND q.by_id IS NOT NULL AND q.lane IS NULL AND q.id > p_after AND q.id <= p_until
        ORDER BY q.type, q.lane, q.id
        LIMIT p_size
        FOR UPDATE SKIP LOCKED
    ) AS r;
    DELETE FROM mq.ready WHERE ctid = ANY (v_rows);
END
$$;

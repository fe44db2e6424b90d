-- due_rows: return the entries whose retry is due, including those of expired leases.
CREATE OR REPLACE FUNCTION mq_internal.due_rows(
    p_name text, p_pass text, p_size bigint, p_now timestamptz
) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    PERFORM mq_internal.polled_by_pass(p_name, p_pass, false);
    -- Rows of dead consumers are retried.
    WITH lost AS (
        DELETE FROM mq.polled_batch
        WHERE batch_key IN (
            SELECT b.batch_key FROM mq.polled_batch AS b
            WHERE b.name = p_name AND b.lease_until <= p_now
            FOR UPDATE SKIP LOCKED
        )
        RETURNING batch_key
    )
    UPDATE mq.polled_row AS e
    SET state = 'N', batch_key = NULL, run_at = p_now, error = 'lease expired'
    FROM lost WHERE e.batch_key = lost.batch_key;

    RETURN (
        SELECT array_agg(d.id ORDER BY d.n)
        FROM (
            SELECT e.id, row_number() OVER (ORDER BY e.run_at, e.id) AS n FROM mq.polled_row AS e
            WHERE e.name = p_name AND e.state = 'N' AND e.run_at <= p_now
            ORDER BY e.run_at, e.id LIMIT p_size
        ) AS d
    );
END
$$;

-- hold_rows: put rows of a polling table under a new batch key and a lease.
-- Arguments: p_name, p_pass (see my_pass), p_consumer, p_seconds, p_again (ids of entries to retry); parallel arrays of
--     rows claimed for the first time: p_hashes, p_idents, p_keys; p_active (true: the row is at active_value; for the
--     entries to retry, then for the new rows)
-- Returns: batch_key, lease_until; parallel arrays ids and attempts, entries to retry first
CREATE OR REPLACE FUNCTION mq_internal.hold_rows(
    p_name text, p_pass text, p_consumer text, p_seconds bigint, p_again bigint[], p_hashes bigint[], p_idents jsonb[],
    p_keys text[], p_active boolean[], OUT batch_key uuid, OUT lease_until timestamptz, OUT ids bigint[],
    OUT attempts integer[]
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_batch uuid := gen_random_uuid();
    v_polled mq.polled := mq_internal.polled_by_pass(p_name, p_pass, false);
BEGIN
    IF v_polled.status_column IS NOT NULL AND v_polled.key_columns IS NOT NULL THEN
        -- Delete old entries of dead rows that somebody has set back to ready.
        DELETE FROM mq.polled_row AS e
        USING unnest(p_hashes, p_idents) AS u (hash, ident)
        WHERE e.name = p_name AND e.ident_hash = u.hash AND e.ident = u.ident AND e.state = 'E';
    END IF;
    WITH again AS (
        UPDATE mq.polled_row AS e
        SET state = 'A', batch_key = v_batch, attempts = e.attempts + 1, consumer = p_consumer, active = u.active
        FROM unnest(p_again, p_active[:cardinality(p_again)]) AS u (id, active)
        WHERE e.id = u.id AND e.name = p_name AND e.state = 'N'
        RETURNING e.id, e.attempts
    )
    SELECT array_agg(a.id ORDER BY array_position(p_again, a.id)), array_agg(a.attempts ORDER BY array_position(p_again, a.id))
    INTO ids, attempts
    FROM again AS a;
    WITH claimed AS (
        INSERT INTO mq.polled_row (batch_key, run_at, ident_hash, attempts, active, state, name, ident, key_json, consumer)
        SELECT v_batch, v_now, u.hash, 1, u.active, 'A', p_name, u.ident, u.key_json, p_consumer
        FROM unnest(p_hashes, p_idents, p_keys, p_active[cardinality(p_again) + 1:]) WITH ORDINALITY AS u (hash, ident, key_json,
            active, n)
        ORDER BY u.n
        RETURNING id
    )
    SELECT ids || array_agg(c.id ORDER BY c.id), attempts || array_fill(1, ARRAY[count(*)::integer]) INTO ids, attempts
    FROM claimed AS c;
    batch_key := v_batch;
    lease_until := v_now + make_interval(secs => p_seconds);
    INSERT INTO mq.polled_batch (batch_key, lease_until, lease_seconds, name, consumer)
    VALUES (v_batch, hold_rows.lease_until, p_seconds, p_name, p_consumer);
END
$$;

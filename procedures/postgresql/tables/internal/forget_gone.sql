-- forget_gone: delete due entries whose rows were deleted or have another status.
-- Arguments: p_ids (of due entries), p_found (those whose rows find_rows has locked)
-- Transaction: leaves entries of locked rows for the next claim
CREATE OR REPLACE FUNCTION mq_internal.forget_gone(
    p_polled mq.polled, p_shape jsonb, p_ids bigint[], p_found bigint[]
) RETURNS void
LANGUAGE plpgsql SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 1
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    v_gone bigint[];
    v_active text := CASE WHEN p_polled.status_column IS NULL THEN 'true' ELSE p_shape->>'status_is' END;
    v_ready text := CASE
        WHEN p_polled.status_column IS NULL THEN 'true'
        WHEN p_polled.ready_value IS NULL THEN format('t.%s IS NULL', p_shape->>'status')
        ELSE replace(p_shape->>'status_is', '$1', '$2') END;
BEGIN
    EXECUTE format('SELECT array_agg(e.id) FROM unnest($3) AS u (id)
        CROSS JOIN LATERAL (SELECT * FROM mq.my_polled_row WHERE id = u.id OFFSET 0) AS e
        WHERE NOT EXISTS (
            SELECT FROM jsonb_to_record(e.ident) AS r (%s) JOIN %s AS t ON %s
                AND CASE WHEN e.active THEN %s ELSE %s END
        )', p_shape->>'stored', p_shape->>'quoted', p_shape->>'match', v_active, v_ready) INTO v_gone
    USING p_polled.active_value, p_polled.ready_value, ARRAY(SELECT unnest(p_ids) EXCEPT SELECT unnest(p_found));
    IF v_gone IS NOT NULL THEN
        PERFORM mq_internal.forget_rows(p_polled.name, p_shape->>'pass', v_gone);
    END IF;
END
$$;

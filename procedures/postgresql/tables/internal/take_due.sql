-- take_due: find the rows whose retry is due; rows without attempts left become dead.
-- Returns: parallel arrays: ids (of entries), keys, rows, parts and places; empty when there are none
-- Transaction: skips rows that others have locked
CREATE OR REPLACE FUNCTION mq_internal.take_due(
    p_polled mq.polled, p_shape jsonb, p_size bigint, p_now timestamptz, OUT ids bigint[], OUT keys text[],
    OUT rows text[], OUT parts oid[], OUT places tid[]
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_due bigint[] := mq_internal.due_rows(p_polled.name, p_shape->>'pass', p_size, p_now);
    v_found record;
    v_dead record;
BEGIN
    IF v_due IS NOT NULL THEN
        SELECT array_agg(f.id) AS ids, array_agg(f.part) AS parts, array_agg(f.place) AS places, array_agg(f.row_json) AS rows
        INTO v_found
        FROM mq_internal.find_rows(p_polled, p_shape, v_due, true) AS f;
        IF cardinality(v_found.ids) IS DISTINCT FROM cardinality(v_due) THEN
            PERFORM mq_internal.forget_gone(p_polled, p_shape, v_due, coalesce(v_found.ids, '{}'));
        END IF;
        SELECT array_agg(e.id) AS ids, array_agg(e.error) AS errors INTO v_dead
        FROM mq.my_polled_row AS e WHERE e.id = ANY (v_found.ids) AND e.attempts >= p_polled.max_attempts;
        IF v_dead.ids IS NOT NULL THEN
            PERFORM mq_internal.fail_rows(p_polled, p_shape, v_dead.ids, array_fill(-1, ARRAY[cardinality(v_dead.ids)]), v_dead.errors);
        END IF;
        SELECT array_agg(u.id), array_agg(e.key_json), array_agg(u.row_json), array_agg(u.part), array_agg(u.place)
        INTO ids, keys, rows, parts, places
        FROM unnest(v_found.ids, v_found.rows, v_found.parts, v_found.places) AS u (id, row_json, part, place)
        CROSS JOIN LATERAL (SELECT key_json FROM mq.my_polled_row WHERE id = u.id OFFSET 0) AS e
        WHERE u.id <> ALL (coalesce(v_dead.ids, '{}'));
    END IF;
    ids := coalesce(ids, '{}');
    keys := coalesce(keys, '{}');
    rows := coalesce(rows, '{}');
    parts := coalesce(parts, '{}');
    places := coalesce(places, '{}');
END
$$;

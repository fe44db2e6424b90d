-- fail_rows: record failed attempts: each row waits for its next attempt, or is dead when no attempt is left.
-- Arguments: p_retries (seconds; NULL: 5 doubled for each attempt, up to 3,600; -1: dead now; -2: given back without
--     counting an attempt), p_errors (cut to 4,000 characters)
CREATE OR REPLACE FUNCTION mq_internal.fail_rows(
    p_polled mq.polled, p_shape jsonb, p_ids bigint[], p_retries bigint[], p_errors text[], OUT failed bigint,
    OUT dead bigint, OUT gone bigint
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_dead bigint[];
    v_found record;
    v_some record;
    v_errors text[];
    v_left bigint[] := '{}';
    v_told text[] := '{}';
    v_dies boolean;
BEGIN
    SELECT coalesce(array_agg(e.id) FILTER (WHERE u.retry IS NOT DISTINCT FROM -1
        OR e.attempts >= p_polled.max_attempts AND u.retry IS DISTINCT FROM -2), '{}') INTO v_dead
    FROM unnest(p_ids, p_retries) AS u (id, retry)
    JOIN mq.my_polled_row AS e ON e.id = u.id;
    gone := 0;
    IF p_polled.status_column IS NOT NULL THEN
        SELECT array_agg(f.id) AS ids, array_agg(f.part) AS parts, array_agg(f.place) AS places INTO v_found
        FROM mq_internal.find_rows(p_polled, p_shape, p_ids, false) AS f;
        gone := mq_internal.forget_rows(p_polled.name, p_shape->>'pass', ARRAY(SELECT unnest(p_ids) EXCEPT SELECT unnest(v_found.ids)));
        FOREACH v_dies IN ARRAY ARRAY[true, false] LOOP
            SELECT array_agg(u.id) AS ids, array_agg(u.part) AS parts, array_agg(u.place) AS places INTO v_some
            FROM unnest(v_found.ids, v_found.parts, v_found.places) AS u (id, part, place)
            JOIN mq.my_polled_row AS e ON e.id = u.id
            WHERE v_dies AND e.id = ANY (v_dead) OR NOT v_dies AND e.id <> ALL (v_dead) AND e.active;
            CONTINUE WHEN v_some.ids IS NULL;
            v_errors := mq_internal.write_rows(p_shape, false, CASE WHEN v_dies THEN p_polled.error_value ELSE p_polled.ready_value END,
                v_some.parts, v_some.places);
            SELECT v_left || coalesce(array_agg(u.id), '{}'), v_told || coalesce(array_agg(u.error), '{}')
            INTO v_left, v_told
            FROM unnest(v_some.ids, v_errors) AS u (id, error)
            WHERE u.error IS NOT NULL;
        END LOOP;
    END IF;
    -- When the table refuses error_value, the entry waits and the row dies at a later try. Without the entry, the row's
    -- status would make it claimable.
    v_dead := ARRAY(SELECT unnest(v_dead) EXCEPT SELECT unnest(v_left));
    SELECT p.failed, p.dead INTO failed, dead
    FROM mq_internal.put_back_rows(p_polled.name, p_shape->>'pass', p_ids, p_retries, p_errors, v_dead, v_left, v_told) AS p;
END
$$;

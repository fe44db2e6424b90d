-- fail_rows: attempts at rows have failed: each waits for its next attempt, or is dead when it has none left.
-- Arguments:   p_polled, p_shape (polled_shape); side by side: p_ids (of claims), p_retries (seconds; NULL: 5 doubled
--              for each attempt;
--              -1: dead now; -2: given back without costing an attempt), p_errors (cut to 4,000 characters)
-- Returns:     counts: failed, dead, gone
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT * FROM mq.fail_rows(v_polled, v_shape, ARRAY[17], ARRAY[30], ARRAY['busy']);

CREATE OR REPLACE FUNCTION mq.fail_rows(
    p_polled mq.polled,
    p_shape jsonb,
    p_ids bigint[],
    p_retries integer[],
    p_errors text[],
    OUT failed bigint,
    OUT dead bigint,
    OUT gone bigint
)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_dead bigint[];
    v_found record;
    v_some record;
    v_errors text[];
    v_left bigint[] := '{}';
    v_told text[] := '{}';
    v_dies boolean;
BEGIN
    SELECT coalesce(array_agg(e.id) FILTER (WHERE u.retry IS NOT DISTINCT FROM -1
        OR e.attempts >= p_polled.max_attempts AND u.retry IS DISTINCT FROM -2), '{}')
    INTO v_dead
    FROM unnest(p_ids, p_retries) AS u (id, retry)
    JOIN mq.polled_row AS e ON e.id = u.id;
    gone := 0;
    IF p_polled.status_column IS NOT NULL THEN
        SELECT array_agg(f.id) AS ids, array_agg(f.part) AS parts, array_agg(f.place) AS places
        INTO v_found
        FROM mq.find_rows(p_polled, p_shape, p_ids, false) AS f;
        DELETE FROM mq.polled_row WHERE id = ANY (p_ids) AND id <> ALL (coalesce(v_found.ids, '{}'));
        GET DIAGNOSTICS gone = ROW_COUNT;
        FOREACH v_dies IN ARRAY ARRAY[true, false] LOOP
            SELECT array_agg(u.id) AS ids, array_agg(u.part) AS parts, array_agg(u.place) AS places
            INTO v_some
            FROM unnest(v_found.ids, v_found.parts, v_found.places) AS u (id, part, place)
            JOIN mq.polled_row AS e ON e.id = u.id
            WHERE v_dies AND e.id = ANY (v_dead) OR NOT v_dies AND e.id <> ALL (v_dead) AND e.active;
            CONTINUE WHEN v_some.ids IS NULL;
            v_errors := mq.write_rows(p_shape, false, CASE WHEN v_dies THEN p_polled.error_value ELSE p_polled.ready_value END,
                v_some.parts, v_some.places);
            SELECT v_left || coalesce(array_agg(u.id), '{}'), v_told || coalesce(array_agg(u.error), '{}')
            INTO v_left, v_told
            FROM unnest(v_some.ids, v_errors) AS u (id, error)
            WHERE u.error IS NOT NULL;
        END LOOP;
    END IF;
    -- Whom the table will not have dead must try that again: its status would make it claimable.
    v_dead := ARRAY(SELECT unnest(v_dead) EXCEPT SELECT unnest(v_left));
    WITH written AS (
        UPDATE mq.polled_row AS e
        SET state = CASE WHEN e.id = ANY (v_dead) THEN 'E' ELSE 'N' END,
            batch_key = NULL,
            run_at = CASE WHEN e.id = ANY (v_dead) THEN v_now
                -- Jitter between half and the whole, so that what failed together does not come back together.
                ELSE v_now + make_interval(secs => coalesce(CASE WHEN u.retry >= 0 THEN u.retry WHEN u.retry = -2 THEN 0 END,
                    least(3600, 5 * 2.0 ^ least(e.attempts - 1, 40)) * (0.5 + random() / 2))) END,
            attempts = e.attempts - CASE WHEN u.retry = -2 THEN 1 ELSE 0 END,
            active = e.active AND l.id IS NOT NULL,
            error = left(coalesce(l.error, CASE WHEN u.retry = -2 THEN e.error ELSE u.error END), 4000)
        FROM unnest(p_ids, p_retries, p_errors) AS u (id, retry, error)
        LEFT JOIN unnest(v_left, v_told) AS l (id, error) ON l.id = u.id
        WHERE e.id = u.id
        RETURNING e.state
    )
    SELECT count(*) FILTER (WHERE state = 'N'), count(*) FILTER (WHERE state = 'E') INTO failed, dead FROM written;
END
$$;

-- claim_rows: claim up to p_size rows of an adopted table under one new batch key.
-- Arguments:   p_name, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: 60)
-- Returns:     id, key, row, attempt, batch_key, lease_until; first what comes again, then new rows in their order
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; claims of one table wait for each other until then
-- Example:     SELECT * FROM mq.claim_rows('orders', 100, 'worker-1', 60);

CREATE OR REPLACE FUNCTION mq.claim_rows(
    p_name text,
    p_size integer DEFAULT NULL,
    p_reader text DEFAULT NULL,
    p_lease_seconds integer DEFAULT NULL
) RETURNS TABLE (
    id bigint,
    key text,
    "row" text,
    attempt integer,
    batch_key uuid,
    lease_until timestamptz
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled;
    v_shape jsonb;
    v_size integer := coalesce(p_size, 1);
    v_seconds integer := coalesce(p_lease_seconds, 60);
    v_reader text;
    v_now timestamptz;
    v_due bigint[];
    v_dead bigint[];
    v_found record;
    v_new record;
    v_from_place boolean;
    v_batch uuid := gen_random_uuid();
    v_errors text[];
    v_refused bigint[];
    v_ids bigint[];
    v_rows text[];
    v_parts oid[];
    v_places tid[];
BEGIN
    PERFORM mq.require_name('name', p_name, false);
    PERFORM mq.require_range('size', p_size, 1, 10000);
    PERFORM mq.require_name('reader', p_reader, true);
    PERFORM mq.require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    v_polled := mq.lock_polled(p_name);
    v_shape := mq.polled_shape(v_polled);
    v_reader := mq.reader_name(p_reader);
    v_now := clock_timestamp();

    -- What a lost consumer held comes again.
    WITH lost AS (
        DELETE FROM mq.polled_batch
        WHERE batch_key IN (
            SELECT b.batch_key FROM mq.polled_batch AS b
            WHERE b.name = p_name AND b.lease_until <= v_now
            FOR UPDATE SKIP LOCKED
        )
        RETURNING batch_key
    )
    UPDATE mq.polled_row AS e
    SET state = 'N', batch_key = NULL, run_at = v_now, error = 'lease expired'
    FROM lost WHERE e.batch_key = lost.batch_key;

    SELECT array_agg(d.id ORDER BY d.n) INTO v_due
    FROM (
        SELECT e.id, row_number() OVER (ORDER BY e.run_at, e.id) AS n
        FROM mq.polled_row AS e
        WHERE e.name = p_name AND e.state = 'N' AND e.run_at <= v_now
        ORDER BY e.run_at, e.id LIMIT v_size
    ) AS d;
    IF v_due IS NOT NULL THEN
        SELECT array_agg(f.id) AS ids, array_agg(f.part) AS parts, array_agg(f.place) AS places, array_agg(f.row_json) AS rows
        INTO v_found
        FROM mq.find_rows(v_polled, v_shape, v_due, true) AS f;
        IF cardinality(v_found.ids) IS DISTINCT FROM cardinality(v_due) THEN
            PERFORM mq.forget_gone(v_polled, v_shape, v_due, coalesce(v_found.ids, '{}'));
        END IF;
        SELECT array_agg(e.id) INTO v_dead
        FROM mq.polled_row AS e WHERE e.id = ANY (v_found.ids) AND e.attempts >= v_polled.max_attempts;
        IF v_dead IS NOT NULL THEN
            PERFORM mq.fail_rows(v_polled, v_shape, v_dead, array_fill(-1, ARRAY[cardinality(v_dead)]),
                ARRAY(SELECT e.error FROM unnest(v_dead) WITH ORDINALITY AS u (id,
                    n) JOIN mq.polled_row AS e ON e.id = u.id ORDER BY u.n));
        END IF;
        UPDATE mq.polled_row AS e
        SET state = 'A', batch_key = v_batch, attempts = e.attempts + 1, reader = v_reader
        WHERE e.id = ANY (v_found.ids) AND e.id <> ALL (coalesce(v_dead, '{}'));
        SELECT array_agg(u.id), array_agg(u.row_json), array_agg(u.part) , array_agg(u.place)
        INTO v_ids, v_rows, v_parts, v_places
        FROM unnest(v_found.ids, v_found.rows, v_found.parts, v_found.places) AS u (id, row_json, part, place)
        WHERE u.id <> ALL (coalesce(v_dead, '{}'));
        v_size := v_size - coalesce(cardinality(v_ids), 0);
    END IF;

    IF v_size > 0 THEN
        v_from_place := v_shape->>'shape' = 'e' AND v_shape->>'order' IS NOT NULL AND v_polled.place IS NOT NULL
            AND v_polled.looked_at > v_now - interval '1 second';
        LOOP
            SELECT array_agg(part) AS parts, array_agg(place) AS places, array_agg(ident) AS idents, array_agg(key_json) AS keys,
                array_agg(row_json) AS rows, array_agg(sorted) AS sorted, array_agg(hash) AS hashes, array_agg(copy) AS copies,
                count(*)::integer AS count
            INTO v_new
            FROM mq.pick_rows(v_polled, v_shape, v_size, v_from_place);
            EXIT WHEN NOT v_from_place OR v_new.count = v_size;
            -- Something may stand before the place where the last claim ended.
            v_from_place := false;
        END LOOP;
        IF v_shape->>'shape' IN ('b', 'd', 'e') AND v_new.count > 0 THEN
            UPDATE mq.polled
            SET place = v_new.sorted[v_new.count], place_hash = v_new.hashes[v_new.count], copies = v_new.copies[v_new.count],
                looked_at = CASE WHEN v_from_place THEN looked_at ELSE v_now END
            WHERE name = p_name;
        END IF;
        IF v_shape->>'shape' = 'a' THEN
            -- Dead once, and made ready again by hand.
            DELETE FROM mq.polled_row AS e
            USING unnest(v_new.hashes, v_new.idents) AS u (hash, ident)
            WHERE e.name = p_name AND e.ident_hash = u.hash AND e.ident = u.ident AND e.state = 'E';
        END IF;
        WITH claimed AS (
            INSERT INTO mq.polled_row (batch_key, run_at, ident_hash, attempts, active, state, name, ident, key_json, reader)
            SELECT v_batch, v_now, u.hash, 1, false, 'A', p_name, u.ident, u.key_json, v_reader
            FROM unnest(v_new.hashes, v_new.idents, v_new.keys) WITH ORDINALITY AS u (hash, ident, key_json, n)
            ORDER BY u.n
            RETURNING id
        )
        SELECT v_ids || array_agg(c.id ORDER BY c.id) INTO v_ids FROM claimed AS c;
        v_rows := v_rows || v_new.rows;
        v_parts := v_parts || v_new.parts;
        v_places := v_places || v_new.places;
    END IF;
    IF v_ids IS NULL THEN
        RETURN;
    END IF;

    INSERT INTO mq.polled_batch (batch_key, lease_until, lease_seconds, name, reader)
    VALUES (v_batch, v_now + make_interval(secs => v_seconds), v_seconds, p_name, v_reader);
    IF v_polled.active_value IS NOT NULL THEN
        v_errors := mq.write_rows(v_shape, false, v_polled.active_value, v_parts, v_places);
        SELECT array_agg(u.id) INTO v_refused FROM unnest(v_ids, v_errors) AS u (id, error) WHERE u.error IS NOT NULL;
        UPDATE mq.polled_row SET active = true WHERE id = ANY (v_ids) AND NOT active AND id <> ALL (coalesce(v_refused, '{}'));
        IF v_refused IS NOT NULL THEN
            -- What the table itself will not have claimed must not stop the others.
            PERFORM mq.fail_rows(v_polled, v_shape, v_refused, array_fill(NULL::integer, ARRAY[cardinality(v_refused)]),
                ARRAY(SELECT error FROM unnest(v_errors) AS u (error) WHERE error IS NOT NULL));
        END IF;
    END IF;
    RETURN QUERY
    SELECT e.id, e.key_json, u.row_json, e.attempts::integer, v_batch, v_now + make_interval(secs => v_seconds)
    FROM unnest(v_ids, v_rows) WITH ORDINALITY AS u (id, row_json, n)
    JOIN mq.polled_row AS e ON e.id = u.id
    WHERE e.batch_key = v_batch
    ORDER BY e.id;
END
$$;

-- claim_wraparound: claim the next messages round the ring of ids.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: where this reader stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; none twice
-- Errors:      50002 invalid_argument, 50003 queue_is_ordered
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.claim_wraparound('crawl', 10, 'worker-1');
--
-- Two statements, because a UNION cannot be locked. The reader's place, round and id, is inserted, not updated, as in mq.mark:
-- nobody waits for it, and of two claims of one reader that began at the same place the one that went further counts.
--
-- Low-water mark. A claim that comes short goes round to the lowest id, and under an open snapshot it walks all that is done up
-- to the first message that is left. If that took long, the next claims begin there, for ten times as long as it took, at
-- most 5 seconds: the mark is the place of a reader without a name, good until low_until. What comes back below it calls
-- lower_ring; what a late sender commits there is passed over until the next look from the very start.

CREATE OR REPLACE FUNCTION mq.claim_wraparound(
    p_type text,
    p_size integer DEFAULT NULL,
    p_reader text DEFAULT NULL,
    p_lease_seconds integer DEFAULT NULL,
    p_after_id bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint,
    type text,
    body text,
    headers text,
    priority integer,
    group_key text,
    dedup_key text,
    attempt integer,
    created_at timestamptz,
    source text,
    batch_key uuid,
    lease_until timestamptz
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    -- To walk 1,000 dead rows takes about 0.1 ms.
    c_long CONSTANT interval := '0.3 milliseconds';
    -- A variable: no index can be asked for what is before a volatile function.
    v_now timestamptz := clock_timestamp();
    v_queue mq.queue;
    v_size integer := coalesce(p_size, 1);
    v_reader text := coalesce(p_reader, mq.reader_name(NULL));
    v_place mq.ring;
    v_low mq.ring;
    v_full boolean := false;
    v_from bigint := -9223372036854775808;
    v_promoted_to timestamptz := '-infinity';
    v_expired boolean;
    v_due boolean;
    v_round bigint;
    v_after bigint;
    v_next_id bigint;
    v_ids bigint[];
    v_attempts smallint[];
    v_more record;
    v_newest bigint;
    v_left integer;
    v_begun timestamptz;
    v_walked interval;
    v_again interval;
BEGIN
    PERFORM mq.require_name('type', p_type, false);
    PERFORM mq.require_range('size', p_size, 1, 10000);
    PERFORM mq.require_name('reader', p_reader, true);
    PERFORM mq.require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    v_queue := mq.policy(p_type);
    IF v_queue.ordered THEN
        PERFORM mq.raise_error('queue_is_ordered', 'claim_wraparound goes by id and would break the order of '
            || p_type || '; use claim_batch');
    END IF;
    IF v_queue.paused THEN
        RETURN;
    END IF;

    SELECT * INTO v_low FROM mq.ring WHERE type = p_type AND reader = '' ORDER BY type, reader, n DESC, after_id DESC LIMIT 1;
    IF v_now < v_low.low_until AND v_now > v_low.low_until - interval '1 minute' THEN
        v_from := v_low.after_id;
        v_promoted_to := v_low.promoted_to;
    ELSE
        v_full := true;
    END IF;
    -- What takes long at first, a plan or pages that nobody has read for a while, does not take long again.
    FOR i IN 1..2 LOOP
        v_begun := clock_timestamp();
        v_expired := v_full AND EXISTS (SELECT FROM mq.batch WHERE type = p_type AND lease_until <= v_now);
        v_due := EXISTS (SELECT FROM mq.delayed WHERE type = p_type AND run_at > v_promoted_to AND run_at <= v_now);
        v_walked := clock_timestamp() - v_begun;
        EXIT WHEN v_walked < c_long;
    END LOOP;
    IF v_expired THEN
        PERFORM mq.rescue(v_queue, 20);
    END IF;
    IF v_due THEN
        v_due := (mq.promote(v_queue, v_promoted_to, v_now, greatest(2 * v_size, 100))).moved = greatest(2 * v_size, 100);
    END IF;

    SELECT * INTO v_place
    FROM mq.ring
    WHERE type = p_type AND reader = v_reader
    ORDER BY type, reader, n DESC, after_id DESC
    LIMIT 1;
    v_after := coalesce(p_after_id, v_place.after_id, 0);

    WITH gone AS (
        DELETE FROM mq.ready
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM mq.ready
            WHERE type = p_type AND id > greatest(v_after, v_from)
            ORDER BY type, id
            LIMIT v_size
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id, attempts
    )
    SELECT array_agg(g.id ORDER BY g.id), array_agg((g.attempts + 1)::smallint ORDER BY g.id)
    INTO v_ids, v_attempts
    FROM gone AS g;
    v_left := v_size - coalesce(cardinality(v_ids), 0);
    v_round := coalesce(v_place.n, 0) + (p_after_id IS NOT NULL)::integer;
    IF v_left > 0 THEN
        FOR i IN 1..2 LOOP
            v_begun := clock_timestamp();
            IF v_ids IS NULL THEN
                PERFORM id FROM mq.ready WHERE type = p_type AND id > greatest(v_after, v_from) ORDER BY type, id LIMIT 1;
            END IF;
            SELECT id INTO v_next_id
            FROM mq.ready
            WHERE type = p_type AND id > v_from AND id <= v_after
            ORDER BY type, id
            LIMIT 1;
            v_again := clock_timestamp() - v_begun;
            EXIT WHEN v_again < c_long;
        END LOOP;
        v_walked := v_walked + v_again;
        IF v_walked > c_long AND v_ids IS NULL AND v_next_id IS NULL THEN
            SELECT last_value INTO v_newest FROM mq.message_id_seq;
        END IF;
    END IF;
    IF v_next_id IS NOT NULL THEN
        WITH gone AS (
            DELETE FROM mq.ready
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM mq.ready
                WHERE type = p_type AND id >= v_next_id AND id <= v_after
                ORDER BY type, id
                LIMIT v_left
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING id, attempts
        )
        SELECT array_agg(g.id ORDER BY g.id) AS ids, array_agg((g.attempts + 1)::smallint ORDER BY g.id) AS attempts
        INTO v_more
        FROM gone AS g;
        IF v_more.ids IS NOT NULL THEN
            v_ids := v_ids || v_more.ids;
            v_attempts := v_attempts || v_more.attempts;
            v_round := v_round + 1;
        END IF;
    END IF;
    IF v_walked > c_long THEN
        INSERT INTO mq.ring (n, after_id, low_until, promoted_to, type, reader)
        VALUES (
            coalesce(v_low.n, 0) + 1,
            CASE
                WHEN v_left = 0 THEN v_from
                WHEN v_next_id IS NOT NULL THEN v_next_id - 1
                WHEN v_ids IS NOT NULL THEN greatest(v_after, v_from)
                -- Nothing is left: up to the newest id there is.
                ELSE v_newest
            END,
            CASE
                WHEN v_full THEN clock_timestamp() + least(10 * v_walked, interval '5 seconds')
                ELSE v_low.low_until
            END,
            -- Not up to now: somebody may be about to commit what he has failed.
            CASE WHEN v_due THEN v_promoted_to ELSE v_now - interval '1 second' END,
            p_type, ''
        );
        DELETE FROM mq.ring
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM mq.ring
            WHERE type = p_type AND reader = '' AND n BETWEEN v_low.n - 20 AND v_low.n
            FOR UPDATE SKIP LOCKED
        ));
    END IF;
    IF v_ids IS NULL THEN
        RETURN;
    END IF;

    INSERT INTO mq.ring (n, after_id, type, reader) VALUES (v_round, v_ids[cardinality(v_ids)], p_type, v_reader);
    -- The place before, those that other claims left a little behind it, and at the end of a round the last two.
    DELETE FROM mq.ring
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mq.ring
        WHERE type = p_type AND reader = v_reader AND (n, after_id) <= (v_place.n, v_place.after_id)
            AND (n, after_id) >= (
                CASE v_round WHEN v_place.n THEN v_place.n ELSE v_place.n - 1 END,
                CASE v_round WHEN v_place.n THEN v_place.after_id - 20 * v_size ELSE 0 END
            )
        FOR UPDATE SKIP LOCKED
    ));
    RETURN QUERY SELECT * FROM mq.hold(v_queue, v_ids, v_attempts, v_reader, p_lease_seconds);
END
$$;

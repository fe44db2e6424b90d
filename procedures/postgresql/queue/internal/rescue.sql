-- rescue: end up to p_batches expired claims of a type: their messages are ready again, or dead after the last attempt.
CREATE OR REPLACE FUNCTION mq_internal.rescue(p_queue mq.queue, p_batches bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    -- A variable: a comparison with a volatile function cannot use an index.
    v_now timestamptz := clock_timestamp();
    -- Fetched one by one: a batch that is held does not count, and the rows of a FOR loop would be locked in advance.
    c_expired CURSOR FOR
        SELECT batch_key, consumer, ids, attempts FROM mq.batch WHERE type = p_queue.type AND lease_until <= v_now
        ORDER BY type, lease_until
        FOR UPDATE SKIP LOCKED;
    v_batch record;
    v_ids bigint[];
    v_attempts smallint[];
    v_count bigint := 0;
BEGIN
    OPEN c_expired;
    WHILE p_batches > 0 LOOP
        FETCH c_expired INTO v_batch;
        EXIT WHEN NOT FOUND;
        -- A handler's open transaction that has saved a step locks its message.
        CONTINUE WHEN mq_internal.is_held(v_batch.ids);
        p_batches := p_batches - 1;
        DELETE FROM mq.batch WHERE batch_key = v_batch.batch_key;
        -- A message with attempts left becomes ready at once, at the position where it was sent. The others are
        -- dead-lettered.
        SELECT array_agg(u.id), array_agg(u.attempt) INTO v_ids, v_attempts
        FROM unnest(v_batch.ids, v_batch.attempts) AS u (id, attempt)
        CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
        WHERE u.attempt < coalesce(m.max_attempts, p_queue.max_attempts);
        IF v_ids IS NOT NULL THEN
            PERFORM mq_internal.put_back(p_queue, v_ids, v_attempts);
        END IF;
        IF cardinality(v_batch.ids) > coalesce(cardinality(v_ids), 0) THEN
            SELECT array_agg(u.id), array_agg(u.attempt) INTO v_ids, v_attempts
            FROM unnest(v_batch.ids, v_batch.attempts) AS u (id, attempt)
            WHERE v_ids IS NULL OR u.id <> ALL (v_ids);
            PERFORM mq_internal.fail_messages(p_queue, v_batch.consumer, v_ids, v_attempts,
                array_fill(-1, ARRAY[cardinality(v_ids)]),
                array_fill('lease expired: the consumer died or was too slow'::text, ARRAY[cardinality(v_ids)]));
        END IF;
        v_count := v_count + cardinality(v_batch.ids);
    END LOOP;
    CLOSE c_expired;
    RETURN v_count;
END
$$;

-- send_changes: send one message per changed row to each subscribed type, and to each type bound to a subscribed topic.
-- Arguments: p_action (I, U or D), p_keys and p_old_keys (parallel arrays of JSON texts; p_old_keys NULL: no old keys)
-- Transaction: the writer's
CREATE OR REPLACE FUNCTION mq_internal.send_changes(
    p_label text, p_action text, p_keys text[], p_old_keys text[]
) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_head text := format('{"table":%s,"action":"%s","key":', to_json(p_label), p_action);
    v_source text := mq_internal.consumer_name(NULL);
    v_types text[];
    v_headers text[];
    v_topics boolean;
    v_type text;
    -- Assign the transaction ID before the settings are read: see convert_rows.
    v_me xid8 := pg_current_xact_id();
    v_queue mq.queue;
    v_by_id boolean;
BEGIN
    SELECT array_agg(s.type ORDER BY s.type), coalesce(bool_or(s.topic <> ''), false) INTO v_types, v_topics
    FROM mq.subscription AS s
    WHERE s.label = p_label AND s.action = p_action;
    IF v_topics THEN
        -- Only tables with a subscribed topic run this slower query.
        SELECT array_agg(t.type ORDER BY t.type, s.topic), array_agg(t.headers ORDER BY t.type, s.topic)
        INTO v_types, v_headers
        FROM mq.subscription AS s
        CROSS JOIN LATERAL (
            SELECT s.type, NULL AS headers WHERE s.topic = ''
            UNION ALL
            -- A topic needs no escapes in JSON, see require_topic.
            SELECT b.type, concat('{"topic":"', s.topic, '"}') FROM mq_internal.topic_types(s.topic) AS b (type) WHERE s.topic <> ''
        ) AS t
        WHERE s.label = p_label AND s.action = p_action;
    END IF;
    IF p_old_keys = p_keys THEN
        p_old_keys := NULL;
    END IF;
    -- One statement per type needs neither a join nor a sort: unnest gives the rows in the order of the arrays.
    FOR i IN 1..coalesce(cardinality(v_types), 0) LOOP
        v_queue := mq_internal.policy(v_types[i]);
        v_by_id := CASE WHEN v_queue.grouped OR v_queue.ring OR v_queue.fair
            OR current_setting('transaction_isolation') <> 'read committed' THEN v_queue.grouped END;
        WITH sent AS (
            INSERT INTO mq.message (run_at, created_at, priority, type, body, headers, source)
            SELECT v_now, v_now, 0, v_types[i], concat(v_head, c.key, ',"old_key":' || nullif(c.old_key, c.key), '}'),
                v_headers[i], v_source
            FROM unnest(p_keys, p_old_keys) AS c (key, old_key)
            RETURNING id
        ), grouped AS (
            INSERT INTO mq.grouped (id, attempts, type, group_key)
            SELECT id, 0, v_types[i], '' FROM sent WHERE v_queue.grouped
        )
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        SELECT v_now, id, 0, 0, v_types[i], v_by_id, mq_internal.lane(v_queue.fair OR v_queue.grouped, 0, NULL) FROM sent;
    END LOOP;
    -- After all rows: every wake-up reads the waiters.
    FOR v_type IN SELECT DISTINCT t.type FROM unnest(v_types) AS t (type) LOOP
        PERFORM mq_internal.wake(v_type);
    END LOOP;
END
$$;

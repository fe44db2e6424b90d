-- set_queue: change settings of a queue.
-- Arguments:   p_type (1 to 200 characters), p_options (a flat JSON object; a setting that it does not name keeps its
--              value, null sets the default). The settings with their limits and defaults: lease_seconds (1 to 86,400;
--              60), max_attempts (1 to 1,000; 25), backoff_seconds (0 to 315,360,000; 5), backoff_max_seconds (0 to
--              315,360,000; 3,600), on_complete (delete or archive; delete), ordered (0 or 1; 0), notify (0 or 1; 1),
--              max_active (0 to 1,000,000; 0, no limit), rate (messages per rate_seconds, 0 to 1,000,000; 0, no limit),
--              rate_seconds (1 to 86,400; 1); the same limits for each group_key: group_max_active (0), group_rate (0),
--              group_rate_seconds (1); ring (1: consumers go round by id; 0), fair (1: the groups of a priority take
--              turns; 0), dead_stops_group (1: in an ordered queue, a dead letter stops its group_key until it is redriven
--              or deleted; 0)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation (with ordered or a limit per group), 50002 invalid_argument, 50004 queue_not_empty
--              (ordered can change, and limits per group can be added or removed, only without new and active messages),
--              50009 area_missing (ring and fair need the area of that name)
-- Transaction: joins the caller's; calls for one type wait for each other; a change of ring or fair locks the ready
--              messages until it commits; a change of dead_stops_group waits for calls that dead-letter or redrive a message
-- Example:     SELECT * FROM mq.set_queue('invoice', '{"max_attempts": 5, "on_complete": "archive"}');
CREATE OR REPLACE FUNCTION mq.set_queue(
    p_type text,
    p_options text DEFAULT NULL,
    OUT type text, OUT lease_seconds integer, OUT max_attempts integer,
    OUT backoff_seconds integer, OUT backoff_max_seconds integer, OUT on_complete text, OUT ordered smallint,
    OUT notify smallint, OUT max_active integer, OUT rate integer, OUT rate_seconds integer,
    OUT group_max_active integer, OUT group_rate integer, OUT group_rate_seconds integer, OUT paused smallint,
    OUT ring smallint, OUT fair smallint, OUT dead_stops_group smallint, OUT known smallint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_set jsonb;
    v_old mq.queue;
    v_queue mq.queue;
    v_limits boolean;
    v_groups text[];
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    v_set := mq_internal.read_options(p_options, 'options', '{"lease_seconds": [1, 86400], "max_attempts": [1, 1000],
        "backoff_seconds": [0, 315360000], "backoff_max_seconds": [0, 315360000], "on_complete": "text", "ordered": [0, 1],
        "notify": [0, 1], "max_active": [0, 1000000], "rate": [0, 1000000], "rate_seconds": [1, 86400],
        "group_max_active": [0, 1000000], "group_rate": [0, 1000000], "group_rate_seconds": [1, 86400], "ring": [0, 1],
        "fair": [0, 1], "dead_stops_group": [0, 1]}', to_jsonb(mq_internal.policy('')));
    IF v_set ->> 'on_complete' NOT IN ('delete', 'archive') THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'on_complete: must be delete or archive');
    END IF;
    PERFORM mq_internal.require_area(o.key) FROM jsonb_each(v_set) AS o WHERE o.key IN ('ring', 'fair') AND o.value = '1';
    IF v_set ?| ARRAY['ordered', 'group_max_active', 'group_rate', 'group_rate_seconds', 'dead_stops_group'] THEN
        -- A snapshot could hide the messages that these settings must not meet, and those that wait for a token.
        PERFORM mq_internal.require_read_committed();
    END IF;

    known := mq_internal.is_known(p_type)::integer;
    v_queue := mq_internal.policy(p_type);
    INSERT INTO mq.queue SELECT v_queue.* ON CONFLICT DO NOTHING;
    SELECT * INTO v_old FROM mq.queue AS q WHERE q.type = p_type FOR NO KEY UPDATE;
    v_queue := jsonb_populate_record(v_old, v_set);
    v_limits := v_queue.group_max_active > 0 OR v_queue.group_rate > 0 OR EXISTS (
        SELECT FROM mq.queue_group AS g WHERE g.type = p_type AND (g.max_active > 0 OR g.rate > 0)
    );
    v_queue.grouped := v_queue.ordered OR v_limits;
    IF v_queue.ordered AND v_queue.group_max_active > 1 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'group_max_active: must be 0 or 1 on an ordered queue');
    END IF;
    IF v_queue.ordered AND EXISTS (SELECT FROM mq.queue_group AS g WHERE g.type = p_type AND g.max_active > 1) THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'ordered: a group has a max_active above 1: see set_group');
    END IF;
    IF v_queue.ring AND (v_queue.ordered OR v_queue.fair OR v_limits) THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'ring: cannot be combined with '
            || CASE WHEN v_queue.ordered THEN 'ordered' WHEN v_queue.fair THEN 'fair' ELSE 'limits per group' END);
    END IF;
    IF v_queue.dead_stops_group AND NOT v_queue.ordered THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'dead_stops_group: must be 0 on a queue that is not ordered');
    END IF;
    IF v_queue.grouped AND NOT v_old.grouped THEN
        -- Rows of a transaction that sent while the queue still had groups, and committed after it had none. If another one
        -- has committed just now, the queue is not empty.
        DELETE FROM mq.grouped AS g WHERE g.type = p_type;
    END IF;
    IF (v_queue.ordered, v_queue.grouped) <> (v_old.ordered, v_old.grouped) AND NOT mq_internal.is_empty(v_old) THEN
        IF v_queue.ring OR (v_queue.ordered, v_queue.group_max_active, v_queue.group_rate)
                <> (v_old.ordered, v_old.group_max_active, v_old.group_rate) THEN
            PERFORM mq_internal.raise_error('queue_not_empty', format('%s only while %s holds no new and no active message',
                CASE WHEN v_queue.ordered <> v_old.ordered THEN 'ordered can change' ELSE 'limits per group can be added or removed' END,
                p_type));
        END IF;
        -- set_group has removed the last limit: the messages keep their tickets.
        v_queue.grouped := true;
    END IF;
    IF v_queue.on_complete = 'delete' AND v_old.on_complete = 'archive' THEN
        -- A queue that does not archive keeps no results.
        DELETE FROM mq.result AS r USING mq.message AS m WHERE m.id = r.id AND m.type = p_type;
    END IF;
    IF v_queue.dead_stops_group <> v_old.dead_stops_group THEN
        -- Waits for calls that dead-letter messages with the old setting. Before the update: after it, such a call could lock
        -- and read the old row.
        PERFORM FROM mq.queue AS q WHERE q.type = p_type FOR UPDATE;
    END IF;
    UPDATE mq.queue AS q
    SET lease_seconds = v_queue.lease_seconds, max_attempts = v_queue.max_attempts,
        backoff_seconds = v_queue.backoff_seconds, backoff_max_seconds = v_queue.backoff_max_seconds,
        on_complete = v_queue.on_complete, ordered = v_queue.ordered, notify = v_queue.notify,
        max_active = v_queue.max_active, rate = v_queue.rate, rate_seconds = v_queue.rate_seconds,
        group_max_active = v_queue.group_max_active, group_rate = v_queue.group_rate,
        group_rate_seconds = v_queue.group_rate_seconds, grouped = v_queue.grouped, ring = v_queue.ring, fair = v_queue.fair,
        dead_stops_group = v_queue.dead_stops_group,
        mixed = CASE WHEN (v_queue.ring, v_queue.fair) <> (v_old.ring, v_old.fair) THEN v_queue.ring OR v_queue.fair ELSE q.mixed END,
        senders_before = CASE WHEN (v_queue.ring, v_queue.fair) = (v_old.ring, v_old.fair) THEN q.senders_before END
    WHERE q.type = p_type
    RETURNING q.* INTO v_queue;
    IF (v_queue.ring, v_queue.fair) <> (v_old.ring, v_old.fair) THEN
        -- What this call cannot see or lock, claims convert later: see convert_rows.
        v_queue.mixed := false;
        PERFORM mq_internal.convert_rows(v_queue, NULL);
        DELETE FROM mq.ring WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM mq.ring AS r WHERE r.type = p_type FOR UPDATE SKIP LOCKED));
        PERFORM mq_internal.lower_mark(p_type);
    END IF;
    IF v_queue.max_active > 0 OR v_queue.rate > 0 THEN
        INSERT INTO mq.limited AS l (type, full_at) VALUES (p_type, clock_timestamp()) ON CONFLICT DO NOTHING;
    END IF;
    IF v_old.grouped AND (v_queue.group_max_active, v_queue.group_rate, v_queue.group_rate_seconds)
            <> (v_old.group_max_active, v_old.group_rate, v_old.group_rate_seconds) THEN
        PERFORM mq_internal.rebuild_groups(v_queue);
    END IF;
    IF v_queue.dead_stops_group <> v_old.dead_stops_group THEN
        IF v_queue.dead_stops_group THEN
            -- The lock waits for calls that redrive or delete dead letters: those are gone.
            INSERT INTO mq.group_lock (id, type, group_key)
            SELECT m.id, p_type, m.group_key
            FROM (SELECT d.id FROM mq.dead AS d WHERE d.type = p_type FOR KEY SHARE) AS d
            CROSS JOIN LATERAL (SELECT * FROM mq.message AS m WHERE m.id = d.id OFFSET 0) AS m
            WHERE m.group_key IS NOT NULL
            ON CONFLICT DO NOTHING;
        ELSE
            WITH freed AS (
                DELETE FROM mq.group_lock AS l
                WHERE l.type = p_type AND EXISTS (SELECT FROM mq.dead AS d WHERE d.id = ANY (ARRAY[l.id]) ORDER BY d.id OFFSET 0)
                RETURNING l.group_key
            )
            SELECT array_agg(DISTINCT f.group_key) INTO v_groups FROM freed AS f;
            PERFORM mq_internal.issue_tickets(v_queue, v_groups);
        END IF;
    END IF;
    PERFORM mq_internal.wake(p_type);

    SELECT * INTO type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify,
        max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, paused, ring, fair, dead_stops_group
    FROM mq.list_queues(p_type);
END
$$;

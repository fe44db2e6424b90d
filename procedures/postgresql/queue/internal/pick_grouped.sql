-- pick_grouped: take the first messages of groups that are not blocked: one per group in an ordered queue, otherwise as
--     many as the limits per group allow.
-- Arguments: p_take (true: called by take_batch; its own commit finishes the messages, perhaps much later), p_start (read
--     no tickets before this mark; NULL: all)
-- Returns: picked and attempts (the number of this attempt), parallel arrays; NULL when every group is blocked;
--     start: a mark at the first ticket that was read
--
-- In a grouped queue a row of mq.ready is a ticket: the group of this message may have a message to claim. Every message
-- brings a ticket, so senders lock nothing. A group has places: one in an ordered queue, otherwise group_max_active; and
-- tokens, if it has a rate. Each active message has a row in mq.group_lock. A claim reads tickets in claim order, a part at
-- a time, and locks the stripes of their groups (see lock_group): other claims leave these groups alone until it commits.
-- - A group is blocked if no place is free, or if its first message waits for a retry or a token. Its tickets are dropped;
--   a new one is issued when the block ends.
-- - If there is no token left, the first message is delayed until the next token.
-- - Otherwise the first messages of the group are taken, whichever messages the tickets belong to. If the group is not
--   blocked after that, it gets a new ticket.
-- A drop and a finish cannot miss each other. The drop locks the rows of mq.group_lock FOR SHARE until it commits. The
-- finish deletes its row, which waits for the drop, and only then searches the group's next message. A take would hold
-- these locks until its handler ends: it passes over the tickets of blocked groups, and drops none. A claim does so after
-- c_tickets. The first call of each second leaves a mark at the first other ticket, where the next ones begin (see pick).
CREATE OR REPLACE FUNCTION mq_internal.pick_grouped(
    p_queue mq.queue, p_size bigint, p_take boolean, p_start mq.mark, OUT picked bigint[], OUT attempts smallint[],
    OUT start mq.mark
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- The maximum number of groups per call: the stripes that a take locks also block other groups. See lock_group.
    c_groups CONSTANT integer := 250;
    -- A claim drops the tickets of blocked groups among this many, and passes over the others as a take does.
    c_tickets CONSTANT integer := CASE WHEN p_queue.fair THEN 100 ELSE 10000 END;
    v_type text := p_queue.type;
    v_now timestamptz := clock_timestamp();
    v_left integer := p_size;
    v_groups integer := 0;
    v_pass boolean := p_take;
    -- Whether to search for the first group that is not blocked, once per call and in full scans only.
    v_search boolean := p_queue.ordered AND p_start IS NULL;
    v_blocked boolean := p_take;
    v_read integer := 0;
    v_part integer := least(p_size, c_groups);
    v_rows integer;
    v_tickets record;
    v_after_priority integer := coalesce(p_start.priority, -32769);
    v_after_run_at timestamptz := coalesce(p_start.run_at, '-infinity');
    v_after_id bigint := coalesce(p_start.id - 1, 0);
    v_open record;
    v_priority text := CASE WHEN p_queue.fair THEN mq_internal.next_priority(p_queue.type, '') ELSE '' END;
    v_start mq.ring;
    v_place mq.ring;
    v_had integer;
    v_all integer;
    v_keys text[];
    v_state record;
    v_taken record;
    v_full boolean;
    v_end boolean;
    i integer;
    v_handled text[];
    v_gone bigint[];
    v_simple boolean := p_queue.ordered AND p_queue.group_rate = 0
        AND NOT EXISTS (SELECT FROM mq.queue_group WHERE type = p_queue.type AND rate > 0);
    v_kept text[];
    v_used text[];
    v_done text[] := '{}';
BEGIN
    PERFORM mq_internal.require_read_committed();
    WHILE v_priority IS NOT NULL LOOP
        IF p_queue.fair THEN
            v_tickets := mq_internal.read_lanes(p_queue, v_part, v_pass, false, v_priority, v_place);
            IF v_place.n IS NULL THEN
                v_start := v_tickets.start;
            END IF;
            v_had := v_tickets.served[1] - 1;
            SELECT v_tickets.rows AS rows, v_tickets.ids AS ids, v_tickets.attempts AS attempts, v_tickets.n AS n,
                v_tickets.lanes AS lanes, true AS others, ARRAY(SELECT right(unnest(v_tickets.lanes), -5)) AS groups
            INTO v_tickets;
        ELSE
            IF v_search AND v_blocked THEN
                v_search := false;
                v_open := mq_internal.first_open(v_type);
                IF (v_open.priority, v_open.run_at, v_open.id) > (v_after_priority, v_after_run_at, v_after_id) THEN
                    IF NOT p_take THEN
                        -- All at once, without the stripes: the lock rows alone keep the groups blocked until the commit.
                        DELETE FROM mq.ready
                        WHERE ctid = ANY (ARRAY(
                            SELECT r.ctid FROM mq.ready AS r
                            CROSS JOIN LATERAL (
                                SELECT FROM mq.group_lock WHERE type = v_type AND group_key = right(r.lane, -5)
                                LIMIT 1 FOR SHARE SKIP LOCKED
                            ) AS l
                            WHERE r.type = v_type AND (r.priority, r.run_at, r.id) > (v_after_priority, v_after_run_at, v_after_id)
                                AND (r.priority, r.run_at, r.id) < (v_open.priority, v_open.run_at, v_open.id)
                            ORDER BY r.type, r.priority, r.run_at, r.id
                            LIMIT c_tickets
                            FOR UPDATE OF r SKIP LOCKED
                        ));
                    END IF;
                    v_after_priority := v_open.priority;
                    v_after_run_at := v_open.run_at;
                    v_after_id := v_open.id - 1;
                    v_read := 0;
                END IF;
            END IF;
            SELECT array_agg(t.ctid) AS rows, array_agg(t.id) AS ids, array_agg(t.attempts) AS attempts,
                array_agg(t.group_key) AS groups, max(t.priority) AS priority, (array_agg(t.run_at))[count(*)] AS run_at,
                (array_agg(t.id))[count(*)] AS id, min(t.priority) AS first_priority, (array_agg(t.run_at))[1] AS first_run_at,
                bool_or(t.by_id IS NOT TRUE) AS others INTO v_tickets
            FROM (
                SELECT r.ctid, r.priority, r.run_at, r.id, r.attempts, r.by_id, k.group_key FROM mq.ready AS r
                CROSS JOIN LATERAL (
                    SELECT coalesce(right(r.lane, -5), (
                        SELECT coalesce(group_key, '') FROM mq.message WHERE id = r.id
                    )) AS group_key
                ) AS k
                WHERE r.type = v_type AND (r.priority, r.run_at, r.id) > (v_after_priority, v_after_run_at, v_after_id)
                    AND NOT (
                        v_pass
                        AND EXISTS (
                            SELECT FROM mq.group_lock AS l
                            WHERE l.type = v_type AND l.group_key = k.group_key OFFSET 0
                        )
                        AND (p_queue.ordered OR mq_internal.is_busy(p_queue, k.group_key))
                    )
                ORDER BY r.type, r.priority, r.run_at, r.id
                LIMIT v_part
                FOR UPDATE OF r SKIP LOCKED
            ) AS t;
            IF v_read = 0 THEN
                start := ROW(NULL, NULL, NULL, v_tickets.first_run_at, v_tickets.ids[1], NULL, v_tickets.first_priority, v_type);
            END IF;
            v_after_priority := v_tickets.priority;
            v_after_run_at := v_tickets.run_at;
            v_after_id := v_tickets.id;
        END IF;
        v_rows := coalesce(cardinality(v_tickets.rows), 0);
        v_read := v_read + v_rows;
        EXIT WHEN v_rows = 0 AND NOT p_queue.fair;

        -- The groups in the order of their first tickets, except those of which this take has messages already.
        SELECT coalesce(array_agg(u.key) FILTER (WHERE s.n IS NOT NULL), '{}'), count(*) INTO v_keys, v_all
        FROM (
            SELECT key FROM unnest(v_tickets.groups) WITH ORDINALITY AS g (key, n)
            WHERE key IS NOT NULL GROUP BY key ORDER BY min(n)
        ) AS u
        LEFT JOIN LATERAL (
            SELECT n FROM mq.stripe
            WHERE n = hashtext(v_type || E'\n' || u.key) & 16383 AND u.key <> ALL (v_done)
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS s ON true;
        IF v_tickets.others THEN
            -- Rows of senders that could not see yet that the queue is grouped. Other messages outside their groups are
            -- active, failed or finished, and stay outside.
            INSERT INTO mq.grouped (id, attempts, type, group_key)
            SELECT u.id, u.attempts, v_type, u.key
            FROM unnest(v_tickets.ids, v_tickets.attempts, v_tickets.groups) AS u (id, attempts, key)
            WHERE NOT EXISTS (
                    SELECT FROM mq.grouped AS g WHERE g.type = v_type AND g.group_key = u.key AND g.id = u.id OFFSET 0
                )
                AND u.key = ANY (v_keys)
                AND EXISTS (SELECT FROM mq.message AS m WHERE m.id = u.id OFFSET 0)
                AND NOT EXISTS (SELECT FROM mq.group_lock AS l WHERE l.type = v_type AND l.group_key = u.key AND l.id = u.id OFFSET 0)
                AND NOT EXISTS (SELECT FROM mq.dead AS d WHERE d.id = ANY (ARRAY[u.id]) ORDER BY d.id OFFSET 0)
                AND NOT EXISTS (SELECT FROM mq.delayed AS d WHERE d.id = ANY (ARRAY[u.id]) ORDER BY d.id OFFSET 0)
            ON CONFLICT DO NOTHING;
        END IF;

        v_used := '{}';
        IF v_simple THEN
            -- The usual ordered queue: the first message of each group without an active or waiting message, and whether the
            -- group has another one.
            SELECT array_agg(f.row) FILTER (WHERE f.first) AS rows, array_agg(f.id) FILTER (WHERE f.first) AS ids,
                array_agg((f.attempts + 1)::smallint) FILTER (WHERE f.first) AS attempts,
                array_agg(f.key) FILTER (WHERE f.first) AS keys, array_agg(f.key) FILTER (WHERE NOT f.first) AS more,
                count(*) FILTER (WHERE f.first) AS groups, false AS some_late INTO v_taken
            FROM (
                SELECT u.key, g.*, lag(u.n) OVER () IS DISTINCT FROM u.n AS first
                FROM unnest(v_keys) WITH ORDINALITY AS u (key, n)
                LEFT JOIN LATERAL (
                    SELECT true AS blocked FROM mq.group_lock WHERE type = v_type AND group_key = u.key LIMIT 1
                ) AS l ON true
                CROSS JOIN LATERAL (
                    SELECT ctid AS row, id, attempts FROM mq.grouped
                    WHERE l.blocked IS NULL AND type = v_type AND group_key = u.key
                    ORDER BY type, group_key, id LIMIT CASE WHEN p_take THEN 2 ELSE 1 END
                ) AS g
                -- A take never reads more groups than it may take.
                LIMIT CASE WHEN NOT p_take THEN v_left END
            ) AS f;
            WITH gone AS (
                DELETE FROM mq.grouped
                WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.grouped WHERE ctid = ANY (v_taken.rows) FOR UPDATE SKIP LOCKED))
                RETURNING id, group_key
            ), held AS (
                INSERT INTO mq.group_lock (id, type, group_key) SELECT id, v_type, group_key FROM gone WHERE NOT p_take
            )
            SELECT array_agg(id) INTO v_gone FROM gone;
            IF coalesce(cardinality(v_gone), 0) < v_taken.groups THEN
                -- Others are cancelling the first messages of some groups.
                SELECT array_agg(u.id) AS ids, array_agg(u.attempts) AS attempts, array_agg(u.key) AS keys, v_taken.more AS more,
                    count(*) AS groups, false AS some_late INTO v_taken
                FROM unnest(v_taken.ids, v_taken.attempts, v_taken.keys) AS u (id, attempts, key)
                WHERE u.id = ANY (v_gone);
            END IF;
            v_handled := coalesce(v_taken.keys, '{}');
            IF p_take THEN
                v_used := coalesce(v_taken.more, '{}');
            ELSIF v_taken.groups < cardinality(v_keys) THEN
                -- Drop the tickets of blocked groups, unless a call is finishing the group's message.
                v_handled := v_handled || ARRAY(
                    SELECT u.key FROM unnest(v_keys) AS u (key)
                    CROSS JOIN LATERAL (
                        SELECT FROM mq.group_lock WHERE type = v_type AND group_key = u.key AND u.key <> ALL (v_handled)
                        LIMIT 1 FOR SHARE SKIP LOCKED
                    ) AS l
                );
            END IF;
        ELSE
            -- The state of each group: how many messages it may have now. size 0: it is blocked.
            SELECT array_agg(s.key) AS keys, array_agg(s.size) AS sizes, array_agg(s.locks) AS locks,
                array_agg(s.places) AS places, array_agg(s.rate) AS rates, array_agg(s.rate_seconds) AS seconds,
                array_agg(s.tokens) AS tokens, array_agg(s.full_at) AS full_at, coalesce(min(s.size) = 0, false) AS blocked,
                coalesce(max(s.rate) > 0, false) AS rated INTO v_state
            FROM (
                SELECT u.key, o.*, l.locks, t.tokens, b.full_at,
                    CASE
                        WHEN l.waiting > 0 OR o.places > 0 AND l.locks >= o.places THEN 0
                        ELSE least(v_left, CASE WHEN o.places > 0 THEN o.places - l.locks END,
                            CASE WHEN o.rate > 0 THEN greatest(t.tokens, 1) END,
                            CASE WHEN p_queue.fair THEN o.weight - CASE u.key WHEN v_tickets.groups[1] THEN v_had ELSE 0 END END)
                    END AS size
                FROM unnest(v_keys) AS u (key)
                CROSS JOIN LATERAL mq_internal.group_limits(p_queue, u.key) AS o
                CROSS JOIN LATERAL (
                    SELECT count(*) AS locks, count(d.id) AS waiting FROM mq.group_lock AS k
                    -- ORDER BY id selects the right index: see erase.
                    LEFT JOIN LATERAL (SELECT id FROM mq.delayed WHERE id = ANY (ARRAY[k.id]) ORDER BY id) AS d ON true
                    WHERE k.type = v_type AND k.group_key = u.key
                ) AS l
                LEFT JOIN LATERAL (
                    SELECT full_at FROM mq.bucket
                    WHERE o.rate > 0 AND type = v_type AND group_key = u.key FOR NO KEY UPDATE SKIP LOCKED
                ) AS b ON true
                CROSS JOIN LATERAL (
                    SELECT CASE WHEN o.rate > 0 THEN mq_internal.tokens(b.full_at, v_now, o.rate, o.rate_seconds) END AS tokens
                ) AS t
                -- Otherwise the bucket is full and is being deleted.
                WHERE o.rate = 0 OR b.full_at IS NOT NULL
                    OR NOT EXISTS (SELECT FROM mq.bucket AS f WHERE f.type = v_type AND f.group_key = u.key OFFSET 0)
            ) AS s;

            -- Their first messages. An ordered queue takes the very first, or nothing while that is being cancelled.
            SELECT array_agg(h.row) AS rows, array_agg(h.id) AS ids, array_agg((h.attempts + 1)::smallint) AS attempts,
                array_agg(h.n) AS n, array_agg(h.key) AS keys, array_agg(h.late) AS late, count(DISTINCT h.n) AS groups,
                coalesce(bool_or(h.late), false) AS some_late INTO v_taken
            FROM (
                SELECT f.n, f.key, f.tokens IS NOT DISTINCT FROM 0 AS late, g.*
                FROM unnest(v_state.keys, v_state.sizes, v_state.tokens) WITH ORDINALITY AS f (key, size, tokens, n)
                CROSS JOIN LATERAL (
                    SELECT ctid AS row, id, attempts FROM mq.grouped
                    WHERE type = v_type AND group_key = f.key AND id <= CASE WHEN p_queue.ordered THEN (
                            SELECT id FROM mq.grouped WHERE type = v_type AND group_key = f.key ORDER BY type, group_key, id LIMIT 1
                        ) ELSE 9223372036854775807 END
                    ORDER BY type, group_key, id
                    LIMIT f.size
                    FOR UPDATE SKIP LOCKED
                ) AS g
                LIMIT v_left
            ) AS h;
            v_handled := '{}';
            IF v_taken.rows IS NOT NULL THEN
                DELETE FROM mq.grouped WHERE ctid = ANY (v_taken.rows);
                INSERT INTO mq.group_lock (id, type, group_key)
                SELECT u.id, v_type, u.key
                FROM unnest(v_taken.ids, v_taken.keys, v_taken.late) AS u (id, key, late)
                WHERE NOT p_take OR u.late;
                v_handled := ARRAY(SELECT DISTINCT unnest(v_taken.keys));
            END IF;
            IF v_state.rated AND v_taken.rows IS NOT NULL THEN
                -- A message that must wait for its group's next token waits like a failed message of an ordered queue.
                INSERT INTO mq.delayed (id, run_at, priority, attempts, type)
                SELECT m.id, mq_internal.full_after(v_state.full_at[u.n], v_now, 1, v_state.rates[u.n], v_state.seconds[u.n])
                    - make_interval(secs => v_state.seconds[u.n]), m.priority, u.attempts - 1, v_type
                FROM unnest(v_taken.ids, v_taken.attempts, v_taken.n, v_taken.late) AS u (id, attempts, n, late)
                CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
                WHERE u.late;
                -- Without a message, this only corrects a bucket of before the clock was set back.
                INSERT INTO mq.bucket AS b (type, group_key, full_at)
                SELECT v_type, c.key, mq_internal.full_after(v_state.full_at[c.n], v_now, c.messages, v_state.rates[c.n], v_state.seconds[c.n])
                FROM (
                    SELECT u.n, u.key, count(*) FILTER (WHERE NOT u.late) AS messages
                    FROM unnest(v_taken.n, v_taken.keys, v_taken.late) AS u (n, key, late)
                    GROUP BY u.n, u.key
                ) AS c
                WHERE v_state.rates[c.n] > 0
                ON CONFLICT (type, group_key) DO UPDATE SET full_at = excluded.full_at;
            END IF;

            IF p_take THEN
                v_used := v_handled;
            ELSIF v_state.blocked OR NOT p_queue.ordered THEN
                -- Of the groups that are blocked now, drop the tickets. With locks of other claims, only if no call is
                -- finishing one of them; or else the ticket of a group that was blocked before stays, and a group that has
                -- just lost its last free place gets a new one.
                SELECT array_agg(g.key) FILTER (WHERE g.size = 0 AND s.safe),
                    coalesce(array_agg(g.key) FILTER (WHERE g.size > 0 AND NOT s.safe), '{}') INTO v_kept, v_used
                FROM (
                    SELECT max(f.key) AS key, max(f.size) AS size, max(f.locks) AS locks, max(f.places) AS places,
                        sum(f.messages) AS messages, bool_or(f.late) AS late
                    FROM (
                        SELECT t.*, 0 AS messages, false AS late
                        FROM unnest(v_state.keys, v_state.sizes, v_state.locks, v_state.places)
                            WITH ORDINALITY AS t (key, size, locks, places, n)
                        UNION ALL
                        SELECT NULL, NULL, NULL, NULL, u.n, 1, u.late FROM unnest(v_taken.n, v_taken.late) AS u (n, late)
                    ) AS f
                    GROUP BY f.n
                ) AS g
                CROSS JOIN LATERAL (
                    SELECT CASE
                        WHEN g.size > 0 AND NOT g.late AND (g.places = 0 OR g.locks + g.messages < g.places) THEN false
                        WHEN g.locks = 0 OR g.late THEN true
                        ELSE (
                            SELECT count(*) FROM (
                                SELECT FROM mq.group_lock AS l WHERE l.type = v_type AND l.group_key = g.key FOR SHARE SKIP LOCKED
                            ) AS l
                        ) >= g.locks + g.messages
                    END AS safe
                ) AS s
                WHERE g.size = 0 OR g.messages > 0;
                v_handled := v_handled || v_kept;
            END IF;
        END IF;
        v_done := v_done || CASE WHEN p_take THEN v_handled ELSE '{}' END;
        IF cardinality(v_handled) < v_all THEN
            -- Tickets stay whose groups others have locked, or whose first messages others are cancelling or purging.
            v_tickets.rows := ARRAY(
                SELECT u.row FROM unnest(v_tickets.rows, v_tickets.groups) AS u (row, key)
                WHERE u.key IS NULL OR u.key = ANY (v_handled) OR u.key = ANY (v_keys)
                    AND NOT EXISTS (SELECT FROM mq.grouped AS g WHERE g.type = v_type AND g.group_key = u.key OFFSET 0)
            );
        END IF;
        DELETE FROM mq.ready WHERE ctid = ANY (v_tickets.rows);
        IF NOT p_queue.ordered AND NOT v_taken.ids <@ v_tickets.ids THEN
            -- The other tickets of the taken messages.
            v_tickets.rows := mq_internal.lock_places(v_type, v_taken.ids, 'infinity');
            DELETE FROM mq.ready WHERE ctid = ANY (v_tickets.rows);
        END IF;
        -- After the spent tickets are deleted: one of them may belong to the next message and would count as its ticket.
        IF v_used <> '{}' THEN
            PERFORM mq_internal.issue_tickets(p_queue, v_used);
        END IF;

        IF v_taken.some_late THEN
            SELECT array_agg(u.id) AS ids, array_agg(u.attempts) AS attempts, v_taken.groups AS groups, v_taken.keys AS keys
            INTO v_taken
            FROM unnest(v_taken.ids, v_taken.attempts, v_taken.late) AS u (id, attempts, late)
            WHERE NOT u.late;
            PERFORM mq_internal.wake(v_type);
        END IF;
        picked := picked || v_taken.ids;
        attempts := attempts || v_taken.attempts;
        v_left := p_size - coalesce(cardinality(picked), 0);
        v_groups := v_groups + v_taken.groups;
        v_full := v_left = 0 OR v_groups >= c_groups OR v_pass AND v_read >= c_tickets;
        -- In a fair queue this part was a round, or the end of one. After a round with messages another one may find more.
        v_end := v_rows < v_part AND (NOT p_queue.fair OR v_taken.groups = 0);
        IF p_queue.fair AND v_rows > 0 THEN
            -- If the batch is full, the groups that come after the last taken one keep their turns, and this one the rest of its
            -- own. Otherwise no turn is left: 1,000 is the highest weight.
            i := CASE WHEN v_left > 0 THEN v_rows
                ELSE array_position(v_tickets.groups, v_taken.keys[cardinality(v_taken.keys)]) END;
            v_place := ROW(v_tickets.n[i], CASE WHEN v_left > 0 THEN 1000
                ELSE cardinality(array_positions(v_taken.keys, v_tickets.groups[i])) + CASE i WHEN 1 THEN v_had ELSE 0 END END,
                v_type, v_priority, v_tickets.lanes[i]);
        END IF;
        IF v_place.n IS NOT NULL AND (v_full OR v_end) THEN
            PERFORM mq_internal.save_position(v_place, v_start);
        END IF;
        EXIT WHEN v_full OR v_end AND NOT p_queue.fair;
        IF v_end THEN
            v_priority := mq_internal.next_priority(v_type, v_priority);
            v_place := NULL;
        END IF;
        v_blocked := 2 * v_taken.groups <= v_rows;
        IF NOT v_pass AND v_read >= c_tickets THEN
            v_pass := true;
            v_read := 0;
        END IF;
        -- Behind many blocked groups a claim reads more tickets at once. A take does not: others skip what it has locked.
        v_part := CASE
            WHEN v_pass OR p_queue.fair OR NOT v_blocked THEN least(v_left, c_groups - v_groups)
            ELSE least(4 * v_part, 1000)
        END;
    END LOOP;
END
$$;

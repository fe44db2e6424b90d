-- pick_grouped: take the first messages of groups that are not blocked: one per group in an ordered queue, otherwise as
--               many as the limits per group allow.
-- Arguments:   p_queue (the policy), p_size, p_take (true: called by take_batch; its own commit finishes the messages,
--              perhaps much later)
-- Returns:     picked and attempts (the number of this attempt), parallel arrays; NULL when every group is blocked
-- Transaction: joins the caller's; never waits for another claim
--
-- In a grouped queue a row of mq.ready is a ticket: the group of this message may have a message to claim. Every message
-- brings a ticket, so senders lock nothing. A group has places: one in an ordered queue, otherwise group_max_active. Each
-- active message has a row in mq.group_lock. A claim that finds a ticket reads the state of its group:
-- - The group is blocked if no place is free, or if its first message waits for a retry or a token. The ticket is dropped;
--   a new one is issued when the block ends.
-- - If there is no token left, the first message is delayed until the next token.
-- - Otherwise the first messages of the group are taken, whichever message the ticket belongs to: one in an ordered queue,
--   otherwise as many as places and tokens allow. If the group is not blocked after that, it gets a new ticket.
-- A drop and a finish cannot miss each other. The drop locks the rows of mq.group_lock FOR SHARE until it commits. The
-- finish deletes its row, which waits for the drop, and only then searches the group's next message.

CREATE OR REPLACE FUNCTION mq_internal.pick_grouped(
    p_queue mq.queue,
    p_size bigint,
    p_take boolean,
    OUT picked bigint[],
    OUT attempts smallint[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    -- The maximum number of groups per call: the stripes that a take locks also block other groups. See lock_group.
    c_groups CONSTANT integer := 250;
    -- The maximum number of tickets that one claim reads, even if all groups are blocked.
    c_tickets CONSTANT integer := 10000;
    v_type text := p_queue.type;
    -- 0: no limit.
    v_places integer := CASE WHEN p_queue.ordered THEN 1 ELSE p_queue.group_max_active END;
    -- Fetch one ticket at a time: a FOR loop would lock tickets ahead, and a take would hide their groups from others.
    v_tickets CURSOR FOR
        SELECT r.ctid, r.id, r.attempts, m.id IS NULL AS stale, g.id IS NULL AS lone,
            coalesce(m.group_key, '') AS group_key
        FROM mq.ready AS r
        -- One search by primary key per ticket, with any statistics.
        LEFT JOIN LATERAL (SELECT id, type, group_key FROM mq.message WHERE id = r.id OFFSET 0) AS m ON true
        LEFT JOIN LATERAL (
            SELECT id FROM mq.grouped WHERE type = m.type AND group_key = coalesce(m.group_key, '') AND id = m.id OFFSET 0
        ) AS g ON true
        -- A take does not drop the tickets of blocked groups (see below). Its scan leaves them out: they would use up its
        -- limit.
        WHERE r.type = v_type AND NOT (
            p_take
            AND EXISTS (
                SELECT FROM mq.group_lock AS l WHERE l.type = m.type AND l.group_key = coalesce(m.group_key, '') OFFSET 0
            )
            AND (p_queue.ordered OR mq_internal.is_busy(p_queue, m.group_key))
        )
        ORDER BY r.type, r.priority, r.run_at, r.id
        LIMIT c_tickets
        FOR UPDATE OF r SKIP LOCKED;
    v_ticket record;
    v_groups integer := 0;
    v_locks integer;
    v_head record;
    v_size integer;
    v_taken record;
    v_spent tid[];
    v_used text[] := '{}';
    v_busy text[] := '{}';
BEGIN
    PERFORM mq_internal.require_read_committed();
    IF p_queue.ordered AND p_queue.group_rate = 0 THEN
        -- Usually this is enough.
        SELECT h.picked, h.attempts, h.groups INTO picked, attempts, v_used
        FROM mq_internal.pick_heads(v_type, least(p_size, c_groups), p_take) AS h;
        v_groups := coalesce(cardinality(picked), 0);
        v_used := coalesce(v_used, '{}');
        IF NOT p_take THEN
            v_busy := v_used;
            v_used := '{}';
        END IF;
    END IF;
    OPEN v_tickets;
    LOOP
        EXIT WHEN cardinality(picked) >= p_size OR v_groups >= c_groups;
        FETCH v_tickets INTO v_ticket;
        EXIT WHEN NOT FOUND;
        IF v_ticket.stale OR v_ticket.group_key = ANY (v_busy) AND NOT v_ticket.lone THEN
            v_spent := v_spent || v_ticket.ctid;
            CONTINUE;
        END IF;
        -- Another claim or take has this group locked: leave the ticket.
        CONTINUE WHEN v_ticket.group_key = ANY (v_used)
            OR NOT mq_internal.lock_group(v_type, v_ticket.group_key);
        IF v_ticket.lone THEN
            PERFORM mq_internal.join_group(v_type, v_ticket.group_key, v_ticket.id, v_ticket.attempts);
        END IF;
        v_locks := 0;
        IF EXISTS (SELECT FROM mq.group_lock WHERE type = v_type AND group_key = v_ticket.group_key) THEN
            v_locks := 1;
            IF NOT p_queue.ordered THEN
                SELECT count(*) INTO v_locks FROM mq.group_lock WHERE type = v_type AND group_key = v_ticket.group_key;
            END IF;
            IF p_queue.ordered OR mq_internal.is_busy(p_queue, v_ticket.group_key) THEN
                -- A take would hold the share lock until its handler ends, and calls that finish messages would wait for
                -- it.
                IF NOT p_take AND mq_internal.share_group(v_type, v_ticket.group_key, v_locks) THEN
                    v_busy := v_busy || v_ticket.group_key;
                    v_spent := v_spent || v_ticket.ctid;
                END IF;
                CONTINUE;
            END IF;
        END IF;

        IF p_queue.ordered AND p_queue.group_rate = 0 THEN
            -- Inlined take_group for one message: calling it takes a sixth more time.
            SELECT g.id, g.attempts INTO v_head
            FROM mq.grouped AS g
            WHERE g.type = v_type AND g.group_key = v_ticket.group_key
            ORDER BY g.type, g.group_key, g.id
            LIMIT 1;
            IF NOT FOUND THEN
                v_spent := v_spent || v_ticket.ctid;
                CONTINUE;
            END IF;
            DELETE FROM mq.grouped
            WHERE ctid = ANY (ARRAY(
                SELECT ctid
                FROM mq.grouped
                WHERE type = v_type AND group_key = v_ticket.group_key AND id = v_head.id
                FOR UPDATE SKIP LOCKED
            ));
            CONTINUE WHEN NOT FOUND;  -- another transaction is cancelling or purging it
            v_groups := v_groups + 1;
            v_spent := v_spent || v_ticket.ctid;
            picked := picked || v_head.id;
            attempts := attempts || (v_head.attempts + 1)::smallint;
            IF p_take THEN
                v_used := v_used || v_ticket.group_key;
            ELSE
                -- The group is blocked from now on. Drop its other tickets in this claim, or every claim reads all tickets
                -- of a long group.
                v_busy := v_busy || v_ticket.group_key;
                INSERT INTO mq.group_lock (id, type, group_key) VALUES (v_head.id, v_type, v_ticket.group_key);
            END IF;
            CONTINUE;
        END IF;

        v_size := least(p_size - coalesce(cardinality(picked), 0), CASE WHEN v_places > 0 THEN v_places - v_locks END);
        v_taken := mq_internal.take_group(p_queue, v_ticket.group_key, v_size);
        IF NOT v_taken.leave THEN
            v_spent := v_spent || v_ticket.ctid;
        END IF;
        IF v_taken.put_off THEN
            -- Its other tickets are not needed: the delayed message brings a new one when it is promoted.
            v_groups := v_groups + 1;
            v_busy := v_busy || v_ticket.group_key;
        END IF;
        CONTINUE WHEN v_taken.ids IS NULL;
        v_groups := v_groups + 1;
        picked := picked || v_taken.ids;
        attempts := attempts || v_taken.attempts;
        IF NOT p_take THEN
            INSERT INTO mq.group_lock (id, type, group_key) SELECT unnest(v_taken.ids), v_type, v_ticket.group_key;
        END IF;
        IF NOT p_take AND v_locks + cardinality(v_taken.ids) = v_places
                AND (v_locks = 0 OR mq_internal.share_group(v_type, v_ticket.group_key, v_places)) THEN
            -- No place is free from now on.
            v_busy := v_busy || v_ticket.group_key;
        ELSE
            v_used := v_used || v_ticket.group_key;
        END IF;
    END LOOP;
    CLOSE v_tickets;
    DELETE FROM mq.ready WHERE ctid = ANY (v_spent);
    IF NOT p_queue.ordered THEN
        PERFORM mq_internal.drop_tickets(v_type, picked);
    END IF;
    -- Do this after the spent tickets are deleted: one of them may belong to the next message and would count as its
    -- ticket.
    IF v_used <> '{}' THEN
        PERFORM mq_internal.issue_tickets(v_type, v_used);
    END IF;
END
$$;

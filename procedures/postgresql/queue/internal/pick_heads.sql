-- pick_heads: in an ordered queue without a rate per group, take the first messages of free groups in the order of their
--             tickets, all at once; stop at the first ticket that needs more checks.
-- Arguments:   p_type, p_size, p_take (as in pick_grouped)
-- Returns:     picked, attempts (the number of this attempt) and groups (their keys), parallel arrays; NULL when there are
--              none
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
--
-- This does the work of pick_grouped for all tickets at once, in the same order: ticket, stripe, lock row, first message.
-- Each statement sees everything that was committed before it, so a call that locks a stripe sees what its last holder has
-- done.

CREATE OR REPLACE FUNCTION mq_internal.pick_heads(
    p_type text,
    p_size bigint,
    p_take boolean,
    OUT picked bigint[],
    OUT attempts smallint[],
    OUT groups text[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    v_tickets record;
    v_stripes integer[];
    v_heads record;
    v_rows tid[];
BEGIN
    SELECT array_agg(t.ctid) AS rows, array_agg(t.id) AS ids, array_agg(t.group_key) AS groups
    INTO v_tickets
    FROM (
        SELECT r.ctid, r.id, coalesce(m.group_key, '') AS group_key
        FROM mq.ready AS r
        LEFT JOIN LATERAL (SELECT type, group_key FROM mq.message WHERE id = r.id OFFSET 0) AS m ON true
        WHERE r.type = p_type AND NOT (
            p_take
            -- OFFSET 0: one search per ticket, instead of a list of all active groups. Same below.
            AND EXISTS (
                SELECT FROM mq.group_lock AS l WHERE l.type = m.type AND l.group_key = coalesce(m.group_key, '') OFFSET 0
            )
        )
        ORDER BY r.type, r.priority, r.run_at, r.id
        LIMIT p_size
        FOR UPDATE OF r SKIP LOCKED
    ) AS t;
    IF v_tickets.rows IS NULL THEN
        RETURN;
    END IF;
    v_stripes := ARRAY(
        SELECT n FROM mq.stripe
        WHERE n = ANY (ARRAY(SELECT hashtext(p_type || E'\n' || g.key) & 16383 FROM unnest(v_tickets.groups) AS g (key)))
        FOR NO KEY UPDATE SKIP LOCKED
    );
    SELECT array_agg(s.ticket) AS tickets, array_agg(s.ctid) AS rows, array_agg(s.id) AS ids,
        array_agg(s.attempt) AS attempts, array_agg(s.group_key) AS groups
    INTO v_heads
    FROM (
        SELECT t.ticket, t.group_key, h.ctid, h.id, (h.attempts + 1)::smallint AS attempt, bool_and(
                -- Or the message of the ticket is deleted, or not in its group yet.
                h.id IS NOT NULL AND (h.id = t.id OR EXISTS (
                    SELECT FROM mq.grouped AS o WHERE o.type = p_type AND o.group_key = t.group_key AND o.id = t.id
                    OFFSET 0
                ))
                AND hashtext(p_type || E'\n' || t.group_key) & 16383 = ANY (v_stripes)
                AND NOT EXISTS (
                    SELECT FROM mq.group_lock AS l WHERE l.type = p_type AND l.group_key = t.group_key OFFSET 0
                )
                AND t.n = t.first
            ) OVER (ORDER BY t.n) AS free
        FROM (
            SELECT u.ticket, u.id, u.group_key, u.n, min(u.n) OVER (PARTITION BY u.group_key) AS first
            FROM unnest(v_tickets.rows, v_tickets.ids, v_tickets.groups) WITH ORDINALITY AS u (ticket, id, group_key, n)
        ) AS t
        LEFT JOIN LATERAL (
            SELECT g.ctid, g.id, g.attempts FROM mq.grouped AS g
            WHERE g.type = p_type AND g.group_key = t.group_key
            ORDER BY g.type, g.group_key, g.id
            LIMIT 1
        ) AS h ON true
        ORDER BY t.n
    ) AS s
    WHERE s.free;
    IF v_heads.rows IS NULL THEN
        RETURN;
    END IF;
    v_rows := ARRAY(SELECT g.ctid FROM mq.grouped AS g WHERE g.ctid = ANY (v_heads.rows) FOR UPDATE SKIP LOCKED);
    IF cardinality(v_rows) < cardinality(v_heads.rows) THEN
        -- Another transaction is cancelling or purging the other messages: they keep their tickets.
        SELECT array_agg(u.ticket) AS tickets, array_agg(u.ctid) AS rows, array_agg(u.id) AS ids,
            array_agg(u.attempt) AS attempts, array_agg(u.group_key) AS groups
        INTO v_heads
        FROM unnest(v_heads.tickets, v_heads.rows, v_heads.ids, v_heads.attempts, v_heads.groups)
            AS u (ticket, ctid, id, attempt, group_key)
        WHERE u.ctid = ANY (v_rows);
    END IF;
    DELETE FROM mq.grouped WHERE ctid = ANY (v_rows);
    IF NOT p_take THEN
        INSERT INTO mq.group_lock (id, type, group_key)
        SELECT u.id, p_type, u.group_key FROM unnest(v_heads.ids, v_heads.groups) AS u (id, group_key);
    END IF;
    DELETE FROM mq.ready WHERE ctid = ANY (v_heads.tickets);
    picked := v_heads.ids;
    attempts := v_heads.attempts;
    groups := v_heads.groups;
END
$$;

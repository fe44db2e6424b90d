-- read_lanes: lock the next rows of one priority of a fair queue, lane after lane, from the position of the last claim.
-- Arguments: p_take (skip the tickets of blocked groups), p_share (false: one turn per lane; true: what other claims
--     have not locked), p_priority (the first five characters of its lanes), p_place (the last turn of this claim;
--     NULL: none yet)
-- Returns: rows, ids, attempts, and the turn of each: n, lanes and served; parallel arrays in the order of the turns,
--     NULL when there are none; start: the position from which the claim has read
--
-- The index (type, lane, id) is read from lane to lane: one search per lane, however many messages it has. A turn is the
-- first message of a lane, or as many as the weight of its group; in a grouped queue one ticket, with any weight. What
-- another claim has locked counts as served: the turn passes on to the next lane. So claims that start at the same lane do
-- not serve the same groups.
--
-- The position and the lanes are read in one statement, that is from one snapshot: a claim that sees that the first message
-- of a lane is gone also sees that the lane had its turn.
CREATE OR REPLACE FUNCTION mq_internal.read_lanes(
    p_queue mq.queue, p_size bigint, p_take boolean, p_share boolean, p_priority text, p_place mq.ring, OUT rows tid[],
    OUT ids bigint[], OUT attempts smallint[], OUT n bigint[], OUT lanes text[], OUT served bigint[], OUT start mq.ring
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_type text := p_queue.type;
    v_end text := lpad((p_priority::integer + 1)::text, 5, '0');
    v_weights boolean := EXISTS (SELECT FROM mq.queue_group WHERE type = v_type AND weight > 1);
    v_n bigint := coalesce(p_place.n, 0);
    v_lane text := coalesce(p_place.lane, '');
    v_served bigint := coalesce(p_place.after_id, 0);
BEGIN
    WITH RECURSIVE position AS MATERIALIZED (
        (
            SELECT n, lane, after_id AS served FROM mq.ring
            WHERE type = v_type AND consumer = p_priority AND (n, lane, after_id) > (v_n, v_lane, v_served)
            ORDER BY type, consumer, n DESC, lane DESC, after_id DESC
            LIMIT 1
        )
        UNION ALL
        SELECT v_n, v_lane, v_served LIMIT 1
    ), lanes AS (
        -- The lane where the last turn was, then a lane per step, around to that lane.
        SELECT p.n, p.lane, NULL::tid AS row, p.served, p.n + 1 AS last_n, p.lane AS last_lane,
            p.served AS had
        FROM position AS p
        UNION ALL
        SELECT r.n, r.lane, r.row, 0, l.last_n, l.last_lane, l.had FROM lanes AS l
        CROSS JOIN LATERAL (
            (
                SELECT l.n, q.lane, q.ctid AS row FROM mq.ready AS q
                WHERE q.type = v_type AND q.by_id IS NOT NULL AND q.lane > l.lane AND q.lane >= p_priority AND q.lane < v_end
                ORDER BY q.type, q.lane, q.id
                LIMIT 1
            )
            UNION ALL
            (
                SELECT l.last_n, q.lane, q.ctid FROM mq.ready AS q
                WHERE q.type = v_type AND q.by_id IS NOT NULL AND q.lane >= p_priority AND q.lane < v_end AND l.n < l.last_n
                ORDER BY q.type, q.lane, q.id
                LIMIT 1
            )
            LIMIT 1
        ) AS r
        WHERE (r.n, r.lane) <= (l.last_n, l.last_lane)
    ), turns AS (
        SELECT l.*, CASE WHEN v_weights THEN coalesce((
                SELECT g.weight FROM mq.queue_group AS g WHERE g.type = v_type AND g.group_key = right(l.lane, -5)
            ), 1) ELSE 1 END AS weight
        FROM lanes AS l
        WHERE NOT (p_take AND p_queue.grouped AND mq_internal.is_busy(p_queue, right(l.lane, -5)))
    ), taken AS (
        SELECT t.n, t.lane, t.served + f.i AS served, h.* FROM turns AS t
        CROSS JOIN LATERAL unnest(
            CASE WHEN v_weights THEN ARRAY(
                SELECT q.ctid FROM mq.ready AS q
                WHERE q.type = v_type AND q.by_id IS NOT NULL AND q.lane = t.lane
                ORDER BY q.type, q.lane, q.id
                -- The lane where the round began is also its last one. A grouped claim reads one ticket of it.
                OFFSET CASE WHEN t.row IS NOT NULL AND t.lane = t.last_lane THEN greatest(t.weight - t.had, 0) ELSE 0 END
                LIMIT CASE
                    WHEN NOT p_queue.grouped THEN greatest(t.weight - t.served, 0)
                    WHEN t.lane <> t.last_lane OR (t.row IS NULL) = (t.weight > t.had) THEN 1
                    ELSE 0
                END
            ) ELSE ARRAY[t.row] END
        ) WITH ORDINALITY AS f (row, i)
        CROSS JOIN LATERAL (
            SELECT q.ctid AS row, q.id, q.attempts FROM mq.ready AS q WHERE q.ctid = f.row FOR UPDATE SKIP LOCKED
        ) AS h
        WHERE NOT p_share
        LIMIT p_size
    ), shared AS (
        -- As many whole turns of each lane as the rest of the batch has room for, or one of the first lanes. No row is
        -- locked that is not taken: other claims would pass it over, perhaps again and again.
        SELECT t.n + (f.i - 1) / t.weight AS n, t.lane, (f.i - 1) % t.weight + 1 AS served, f.row, f.id, f.attempts
        FROM (
            SELECT t.*, greatest(p_size / sum(t.weight) OVER (), 1)::integer AS rounds
            FROM turns AS t WHERE p_share AND t.row IS NOT NULL
        ) AS t
        CROSS JOIN LATERAL (
            SELECT row_number() OVER () AS i, o.*
            FROM (
                SELECT q.ctid AS row, q.id, q.attempts FROM mq.ready AS q
                WHERE q.type = v_type AND q.by_id IS NOT NULL AND q.lane = t.lane
                ORDER BY q.type, q.lane, q.id
                LIMIT t.weight * t.rounds
                FOR UPDATE SKIP LOCKED
            ) AS o
        ) AS f
        LIMIT p_size
    )
    SELECT array_agg(t.row), array_agg(t.id), array_agg(t.attempts), array_agg(t.n), array_agg(t.lane), array_agg(t.served),
        max(p.n), max(p.lane), max(p.served) INTO rows, ids, attempts, n, lanes, served, v_n, v_lane, v_served
    FROM position AS p
    LEFT JOIN (
        SELECT n, lane, served, row, id, attempts FROM taken
        UNION ALL
        SELECT * FROM (SELECT * FROM shared ORDER BY n, lane, served) AS s
    ) AS t ON true;
    IF ids[1] IS NULL THEN
        rows := NULL;
    END IF;
    start := ROW(v_n, v_served, v_type, p_priority, v_lane);
END
$$;

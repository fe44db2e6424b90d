-- estimate: estimate how many messages of a type one of the queue's tables holds, from a sample.
-- Arguments: p_table (ready, grouped, due or delayed: the two parts of delayed, or dead)
--
-- It searches the messages with 400 ids, spread from the lowest to the highest id that it finds at both ends of the index.
-- The share of ids found gives the number. Dead letters have few of the ids, so they are sampled by their own numbers.
-- Planner statistics are not used: queues change faster.
CREATE OR REPLACE FUNCTION mq_internal.estimate(p_table text, p_type text, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
DECLARE
    c_sample CONSTANT integer := 400;
    c_ends CONSTANT integer := 100;
    c_priorities CONSTANT integer := 16;
    v_priority integer := -32769;
    v_after timestamptz := CASE p_table WHEN 'delayed' THEN p_now ELSE '-infinity' END;
    v_until timestamptz := CASE p_table WHEN 'delayed' THEN 'infinity' ELSE p_now END;
    v_ends bigint[] := '{}';
    v_low bigint;
    v_size bigint;
    v_sample bigint[];
    v_found bigint;
    v_claimed bigint := 0;
BEGIN
    IF p_table = 'ready' THEN
        -- Each priority has its own order of ids.
        FOR i IN 1 .. c_priorities LOOP
            SELECT priority INTO v_priority FROM mq.ready
            WHERE type = p_type AND priority > v_priority ORDER BY type, priority, run_at, id LIMIT 1;
            EXIT WHEN NOT FOUND;
            v_ends := v_ends || ARRAY(SELECT id FROM mq.ready WHERE type = p_type AND priority = v_priority
                    ORDER BY type, priority, run_at, id LIMIT c_ends)
                || ARRAY(SELECT id FROM mq.ready WHERE type = p_type AND priority = v_priority
                    ORDER BY type DESC, priority DESC, run_at DESC, id DESC LIMIT c_ends);
        END LOOP;
    ELSIF p_table = 'grouped' THEN
        v_ends := ARRAY(SELECT id FROM mq.grouped WHERE type = p_type ORDER BY type, group_key, id LIMIT c_ends)
            || ARRAY(SELECT id FROM mq.grouped WHERE type = p_type ORDER BY type DESC, group_key DESC, id DESC LIMIT c_ends);
    ELSIF p_table IN ('due', 'delayed') THEN
        v_ends := ARRAY(SELECT id FROM mq.delayed WHERE type = p_type AND run_at > v_after AND run_at <= v_until
                ORDER BY type, run_at, id LIMIT c_ends)
            || ARRAY(SELECT id FROM mq.delayed WHERE type = p_type AND run_at > v_after AND run_at <= v_until
                ORDER BY type DESC, run_at DESC, id DESC LIMIT c_ends);
    ELSE
        v_ends := ARRAY(SELECT n FROM mq.dead WHERE type = p_type ORDER BY type, died_at, id LIMIT c_ends)
            || ARRAY(SELECT n FROM mq.dead WHERE type = p_type ORDER BY type DESC, died_at DESC, id DESC LIMIT c_ends);
    END IF;
    SELECT min(e.id), max(e.id) - min(e.id) + 1 INTO v_low, v_size FROM unnest(v_ends) AS e (id);
    v_sample := ARRAY(
        -- Irregular steps, but the same in each call: messages of two queues may alternate.
        SELECT v_low + trunc((i + i * 61803399 % 100000000 / 1e8) * v_size / c_sample)::bigint
        FROM generate_series(0::bigint, c_sample - 1) AS i
    );
    IF p_table = 'dead' THEN
        SELECT count(*) INTO v_found
        FROM unnest(v_sample) AS s (n)
        CROSS JOIN LATERAL (SELECT type FROM mq.dead WHERE n = s.n OFFSET 0) AS e
        WHERE e.type = p_type;
    ELSE
        SELECT count(*) INTO v_found
        FROM unnest(v_sample) AS s (id)
        CROSS JOIN LATERAL (SELECT type FROM mq.message WHERE id = s.id OFFSET 0) AS m
        -- ORDER BY selects the primary keys: see erase.
        LEFT JOIN LATERAL (SELECT id FROM mq.dead WHERE id = ANY (ARRAY[s.id]) ORDER BY id) AS e ON true
        LEFT JOIN LATERAL (SELECT run_at FROM mq.delayed WHERE id = ANY (ARRAY[s.id]) ORDER BY id) AS d ON true
        WHERE m.type = p_type AND e.id IS NULL
            AND p_table = CASE WHEN d.run_at <= p_now THEN 'due' WHEN d.run_at > p_now THEN 'delayed'
                WHEN p_table = 'grouped' THEN 'grouped' ELSE 'ready' END;
    END IF;
    IF p_table IN ('ready', 'grouped') THEN
        -- The sample does not show which messages are claimed.
        SELECT coalesce(sum(cardinality(ids)), 0) INTO v_claimed FROM mq.batch WHERE type = p_type;
    END IF;
    RETURN greatest(v_found * v_size / c_sample - v_claimed, 10001);
END
$$;

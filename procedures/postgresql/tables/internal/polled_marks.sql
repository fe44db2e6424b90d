-- polled_marks: return the highest order value of late_seconds ago, for a polling table without a status.
-- Arguments: p_highest (the highest order value now, to be stored; NULL: none)
-- Returns: settled (that order value; NULL: none yet), is_old (true: it is time to store the highest value again)
CREATE OR REPLACE FUNCTION mq_internal.polled_marks(
    p_name text, p_pass text, p_now timestamptz, p_highest text, OUT settled text, OUT is_old boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled := mq_internal.polled_by_pass(p_name, p_pass, false);
    v_seen timestamptz;
BEGIN
    IF p_highest IS NOT NULL THEN
        INSERT INTO mq.polled_mark (name, seen_at, place) VALUES (p_name, p_now, p_highest) ON CONFLICT DO NOTHING;
    END IF;
    -- Delete marks in the future: the clock was set back, and they would stop all claims until it catches up.
    DELETE FROM mq.polled_mark WHERE name = p_name AND seen_at > p_now + interval '1 second';
    SELECT max(seen_at) INTO v_seen FROM mq.polled_mark WHERE name = p_name;
    is_old := coalesce(v_seen, '-infinity') <= p_now - make_interval(secs => greatest(1, v_polled.late_seconds / 10));
    SELECT place, seen_at INTO settled, v_seen
    FROM mq.polled_mark
    WHERE name = p_name AND seen_at <= p_now - make_interval(secs => v_polled.late_seconds)
    ORDER BY seen_at DESC LIMIT 1;
    DELETE FROM mq.polled_mark WHERE name = p_name AND seen_at < v_seen AND polled_marks.settled IS NOT NULL;
END
$$;

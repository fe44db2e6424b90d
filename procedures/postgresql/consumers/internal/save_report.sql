-- save_report: write the row of a consumer; a report after silence or a stop starts its totals again.
-- Arguments: p_dead (NULL: count them), p_next_seconds (0: the consumer stops)
-- Returns: the number of dead letters since the last report
CREATE OR REPLACE FUNCTION mq_internal.save_report(
    p_type text, p_consumer text, p_now timestamptz, p_completed bigint, p_failed bigint, p_dead bigint, p_busy_ms bigint,
    p_waited_ms bigint, p_next_seconds bigint, p_handling text
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    -- The newest dead letters may not be committed yet: the next report counts them. The last report has no margin,
    -- because all work is done by then.
    c_margin CONSTANT interval := '2 seconds';
    -- A stopped consumer's row is kept for an hour: without a row, none of its dead letters of this hour is counted yet.
    c_unseen CONSTANT interval := '1 hour';
    c_most CONSTANT integer := 10000;
    v_old mq.consumer;
    v_until timestamptz := p_now - CASE WHEN p_next_seconds = 0 THEN interval '0' ELSE c_margin END;
    v_due timestamptz := CASE WHEN p_next_seconds > 0 THEN p_now + 2 * p_next_seconds * interval '1 second' END;
    v_goes_on boolean;
    v_dead bigint := p_dead;
BEGIN
    SELECT * INTO v_old FROM mq.consumer AS c WHERE c.type = p_type AND c.consumer = p_consumer FOR UPDATE;
    IF NOT FOUND THEN
        IF (SELECT count(*) FROM (SELECT FROM mq.consumer AS c WHERE c.type = p_type LIMIT c_most) AS c) = c_most THEN
            PERFORM mq_internal.raise_error('invalid_argument', format('consumer: this queue has %s consumers already', c_most));
        END IF;
        -- Another process may have the same name: the second one continues with the first one's row.
        INSERT INTO mq.consumer (started_at, reported_at, counted_at, completed, failed, dead, busy_ms, waited_ms, type, consumer)
        VALUES (p_now, p_now, p_now - c_unseen, 0, 0, 0, 0, 0, p_type, p_consumer)
        ON CONFLICT DO NOTHING;
        SELECT * INTO v_old FROM mq.consumer AS c WHERE c.type = p_type AND c.consumer = p_consumer FOR UPDATE;
    END IF;
    v_goes_on := coalesce(v_old.due_at >= p_now, false);
    IF v_dead IS NULL THEN
        SELECT count(*) INTO v_dead FROM mq.dead AS d
        WHERE d.type = p_type AND d.died_at > v_old.counted_at AND d.died_at <= v_until AND d.consumer = p_consumer;
    END IF;
    UPDATE mq.consumer AS c
    SET started_at = CASE WHEN v_goes_on THEN c.started_at ELSE p_now END,
        reported_at = p_now,
        due_at = v_due,
        handling = p_handling,
        -- Reports of earlier minutes pass zero: they count nothing, and the next count must not miss what died before.
        counted_at = CASE WHEN p_dead = 0 THEN c.counted_at ELSE greatest(c.counted_at, v_until) END,
        completed = p_completed + CASE WHEN v_goes_on THEN c.completed ELSE 0 END,
        failed = p_failed + CASE WHEN v_goes_on THEN c.failed ELSE 0 END,
        dead = v_dead + CASE WHEN v_goes_on THEN c.dead ELSE 0 END,
        busy_ms = p_busy_ms + CASE WHEN v_goes_on THEN c.busy_ms ELSE 0 END,
        waited_ms = p_waited_ms + CASE WHEN v_goes_on THEN c.waited_ms ELSE 0 END
    WHERE c.type = p_type AND c.consumer = p_consumer;
    RETURN v_dead;
END
$$;

-- send_message: send one message with all options.
-- Arguments:   p_type, p_body, p_run_at (NULL: now), p_priority (-32,768 to 32,767, smaller first; NULL: 0), p_group_key,
--              p_dedup_key, p_max_attempts (1 to 1,000; NULL: the queue's), p_headers (up to 64 KiB), p_source (NULL: the
--              application name); names and keys have 1 to 200 characters
-- Returns:     id, created (0: a live message has this type and dedup_key, and id is that one's)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent the same dedup_key
-- Example:     SELECT * FROM mq.send_message('email', '{}', p_run_at => now() + interval '1 hour', p_dedup_key => 'a-1');

CREATE OR REPLACE FUNCTION mq.send_message(
    p_type text,
    p_body text,
    p_run_at timestamptz DEFAULT NULL,
    p_priority integer DEFAULT NULL,
    p_group_key text DEFAULT NULL,
    p_dedup_key text DEFAULT NULL,
    p_max_attempts integer DEFAULT NULL,
    p_headers text DEFAULT NULL,
    p_source text DEFAULT NULL,
    OUT id bigint,
    OUT created smallint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_run_at timestamptz := coalesce(p_run_at, v_now);
    v_queue mq.queue;
BEGIN
    PERFORM mq.require_name('type', p_type, false);
    IF p_body IS NULL OR octet_length(p_body) > 16777216 THEN
        PERFORM mq.raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    IF v_run_at > v_now + interval '315360000 seconds' OR NOT isfinite(v_run_at) THEN
        PERFORM mq.raise_error('invalid_argument', 'run_at: must be at most 315,360,000 seconds (ten years) ahead');
    ELSIF v_run_at < timestamptz '0001-01-02 00:00:00+00' THEN
        -- Clients know no year before that.
        PERFORM mq.raise_error('invalid_argument', 'run_at: must be in the year 1 or later');
    END IF;
    PERFORM mq.require_range('priority', p_priority, -32768, 32767);
    PERFORM mq.require_name('group_key', p_group_key, true);
    PERFORM mq.require_name('dedup_key', p_dedup_key, true);
    PERFORM mq.require_range('max_attempts', p_max_attempts, 1, 1000);
    IF octet_length(p_headers) > 65536 THEN
        PERFORM mq.raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    END IF;
    PERFORM mq.require_name('source', p_source, true);
    v_queue := mq.policy(p_type);

    LOOP
        INSERT INTO mq.message AS m (run_at, created_at, priority, max_attempts, type, body, headers, group_key,
            dedup_key, source)
        VALUES (v_run_at, v_now, coalesce(p_priority, 0), p_max_attempts, p_type, p_body, p_headers, p_group_key,
            p_dedup_key, mq.reader_name(p_source))
        ON CONFLICT (type, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
        RETURNING m.id INTO id;
        created := 1;
        EXIT WHEN FOUND;
        SELECT m.id INTO id FROM mq.message AS m WHERE m.type = p_type AND m.dedup_key = p_dedup_key;
        created := 0;
        EXIT WHEN FOUND;
        -- The live message was finished between the two searches: send after all.
    END LOOP;
    IF created = 0 THEN
        RETURN;
    END IF;

    IF v_run_at > v_now THEN
        INSERT INTO mq.delayed (id, run_at, priority, attempts, type)
        VALUES (send_message.id, v_run_at, coalesce(p_priority, 0), 0, p_type);
    ELSE
        IF v_queue.ordered THEN
            INSERT INTO mq.grouped (id, attempts, type, group_key)
            VALUES (send_message.id, 0, p_type, coalesce(p_group_key, ''));
        END IF;
        INSERT INTO mq.ready (run_at, id, priority, attempts, type)
        VALUES (v_run_at, send_message.id, coalesce(p_priority, 0), 0, p_type);
        IF v_run_at < v_now THEN
            PERFORM mq.lower_mark(p_type);
        END IF;
    END IF;
    IF v_queue.notify THEN
        PERFORM mq.wake(p_type);
    END IF;
END
$$;

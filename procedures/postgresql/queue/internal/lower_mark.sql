-- lower_mark: make the next claim a full scan, if messages became ready below a low-water mark.
CREATE OR REPLACE FUNCTION mq_internal.lower_mark(p_type text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_n bigint;
BEGIN
    SELECT n INTO v_n FROM mq.mark WHERE type = p_type ORDER BY type, n DESC LIMIT 1;
    IF FOUND THEN
        INSERT INTO mq.mark (n, scanned_at, promoted_to, run_at, id, next_priority, priority, type)
        -- n + 2: a concurrent claim may write marks with n + 1, and those must not count.
        VALUES (v_n + 2, '-infinity', '-infinity', '-infinity', 0, 32768, -32768, p_type);
    END IF;
END
$$;

-- scan_ring: find the lowest ready message of a ring, and measure how long it took.
-- Arguments:   p_type, p_from and p_after (ids above the one, up to the other), p_ahead (nothing was found after p_after
--              either: that scan counts as well), p_long (a scan that took longer is repeated)
-- Returns:     lowest_id (NULL when there is none; it may be locked), scanned (the time that it took)
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT * FROM mq.scan_ring('crawl', 0, 17, false, '0.3 ms');

CREATE OR REPLACE FUNCTION mq.scan_ring(
    p_type text,
    p_from bigint,
    p_after bigint,
    p_ahead boolean,
    p_long interval,
    OUT lowest_id bigint,
    OUT scanned interval
)
LANGUAGE plpgsql
AS $$
DECLARE
    v_begun timestamptz;
BEGIN
    -- As in fill_ring: only what takes long twice counts.
    FOR i IN 1..2 LOOP
        v_begun := clock_timestamp();
        IF p_ahead THEN
            PERFORM id FROM mq.ready WHERE type = p_type AND by_id AND id > greatest(p_after, p_from) ORDER BY type, id LIMIT 1;
        END IF;
        SELECT id INTO lowest_id
        FROM mq.ready
        WHERE type = p_type AND by_id AND id > p_from AND id <= p_after
        ORDER BY type, id
        LIMIT 1;
        scanned := clock_timestamp() - v_begun;
        EXIT WHEN scanned < p_long;
    END LOOP;
END
$$;

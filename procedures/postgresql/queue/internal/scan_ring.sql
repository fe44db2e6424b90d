-- scan_ring: find the lowest ready message of a ring, and measure how long that took.
-- Arguments:   p_type, p_from and p_after (ids above p_from, up to p_after), p_ahead (nothing was found after p_after
--              either: measure that scan too), p_long (a longer scan is repeated)
-- Returns:     lowest_id (NULL when there is none; another transaction may have locked it), scanned (the duration of the
--              scan)

CREATE OR REPLACE FUNCTION mq_internal.scan_ring(
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
    -- Measure twice, as in fill_ring: planning and cold pages are slow only the first time.
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

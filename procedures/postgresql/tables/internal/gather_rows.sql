-- gather_rows: return the rows that pick_rows or pick_lost finds, as parallel arrays.
-- Arguments:   p_polled, p_shape (from polled_shape), p_size (0: none), p_lost (true: lost rows, see pick_lost), p_place
--              (true: ready rows from the low-water mark on)
-- Returns:     count; parallel arrays hashes, idents, keys, rows, parts, places, sorted, copies
-- Transaction: joins the caller's; skips rows that others have locked

CREATE OR REPLACE FUNCTION mq_internal.gather_rows(
    p_polled mq.polled,
    p_shape jsonb,
    p_size bigint,
    p_lost boolean,
    p_place boolean,
    OUT count integer,
    OUT hashes bigint[],
    OUT idents jsonb[],
    OUT keys text[],
    OUT rows text[],
    OUT parts oid[],
    OUT places tid[],
    OUT sorted text[],
    OUT copies bigint[]
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    count := 0;
    IF p_size > 0 AND NOT p_lost THEN
        SELECT count(*), array_agg(x.hash), array_agg(x.ident), array_agg(x.key_json), array_agg(x.row_json), array_agg(x.part),
            array_agg(x.place), array_agg(x.sorted), array_agg(x.copy)
        INTO count, hashes, idents, keys, rows, parts, places, sorted, copies
        FROM mq_internal.pick_rows(p_polled, p_shape, p_size, p_place) AS x;
    ELSIF p_size > 0 AND p_polled.active_value IS NOT NULL THEN
        SELECT count(*), array_agg(x.hash), array_agg(x.ident), array_agg(x.key_json), array_agg(x.row_json), array_agg(x.part),
            array_agg(x.place), array_agg(x.sorted), array_agg(x.copy)
        INTO count, hashes, idents, keys, rows, parts, places, sorted, copies
        FROM mq_internal.pick_lost(p_polled, p_shape, p_size) AS x;
    END IF;
    IF count = 0 THEN
        hashes := '{}';
        idents := '{}';
        keys := '{}';
        rows := '{}';
        parts := '{}';
        places := '{}';
        sorted := '{}';
        copies := '{}';
    END IF;
END
$$;

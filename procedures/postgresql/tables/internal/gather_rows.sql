-- gather_rows: return the rows that pick_rows or pick_lost finds, as parallel arrays.
-- Arguments: p_size (0: none), p_lost (true: lost rows, see pick_lost), p_place (true: ready rows from the low-water
--     mark on)
-- Returns: count; parallel arrays hashes, idents, keys, rows, parts, places, sorted, copies
-- Transaction: skips rows that others have locked
CREATE OR REPLACE FUNCTION mq_internal.gather_rows(
    p_polled mq.polled, p_shape jsonb, p_size bigint, p_lost boolean, p_place boolean, OUT count integer,
    OUT hashes bigint[], OUT idents jsonb[], OUT keys text[], OUT rows text[], OUT parts oid[], OUT places tid[],
    OUT sorted text[], OUT copies bigint[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    SELECT count(*), coalesce(array_agg(x.hash), '{}'), coalesce(array_agg(x.ident), '{}'),
        coalesce(array_agg(x.key_json), '{}'), coalesce(array_agg(x.row_json), '{}'), coalesce(array_agg(x.part), '{}'),
        coalesce(array_agg(x.place), '{}'), coalesce(array_agg(x.sorted), '{}'), coalesce(array_agg(x.copy), '{}')
    INTO count, hashes, idents, keys, rows, parts, places, sorted, copies
    FROM (
        SELECT * FROM mq_internal.pick_rows(p_polled, p_shape, p_size, p_place) WHERE p_size > 0 AND NOT p_lost
        UNION ALL
        SELECT * FROM mq_internal.pick_lost(p_polled, p_shape, p_size)
        WHERE p_size > 0 AND p_lost AND p_polled.active_value IS NOT NULL
    ) AS x;
END
$$;

-- move_polled: store the low-water mark of claims of a polling table.
-- Arguments: p_place, p_hash and p_copies (the last row claimed; all NULL: unchanged), p_looked (time of a scan from the start
--     or for lost rows; NULL: there was none)
CREATE OR REPLACE FUNCTION mq_internal.move_polled(
    p_name text, p_pass text, p_place text, p_hash bigint, p_copies bigint, p_looked timestamptz
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
BEGIN
    PERFORM mq_internal.polled_by_pass(p_name, p_pass, false);
    UPDATE mq.polled
    SET place = coalesce(p_place, place),
        place_hash = CASE WHEN p_place IS NULL THEN place_hash ELSE p_hash END,
        copies = CASE WHEN p_place IS NULL THEN copies ELSE p_copies END,
        scanned_at = coalesce(p_looked, scanned_at)
    WHERE name = p_name;
END
$$;

-- pick_lost: claim rows at active_value that have no entry.
-- Arguments:   p_name, p_batch_key, p_size, p_counted (see polled_shape), p_active (active_value; NULL: none), p_count (a
--              statement that counts rows at a status), p_walk and p_take (see pick_new)
-- Returns:     still_wanted: p_size minus the rows claimed
-- Transaction: joins the caller's, which has locked the row of mq_polled
--
-- Such a row's key changed while it was claimed, or another program set its status. While the old entry exists, there are as
-- many entries as rows, and no row is claimed twice. Entries are counted before rows: rows finished in between make the
-- count of rows smaller, never larger.
CREATE OR ALTER PROCEDURE imq_pick_lost (
    p_name mq_name, p_batch_key mq_key, p_size integer, p_counted smallint, p_active mq_status, p_count mq_text,
    p_walk mq_text, p_take mq_text
)
RETURNS (still_wanted integer)
AS
DECLARE v_entries bigint; DECLARE v_rows bigint;
DECLARE v_size integer;
DECLARE v_last mq_ident;
BEGIN
    still_wanted = p_size;
    IF (p_active IS NOT NULL AND p_size > 0) THEN
    BEGIN
        SELECT COUNT(*) FROM mq_polled_row WHERE name = :p_name AND active = 1 INTO v_entries;
        EXECUTE STATEMENT (p_count) (v_entries + p_size, p_active) INTO v_rows;
        IF (v_rows > v_entries) THEN
        BEGIN
            v_size = v_rows - v_entries;
            EXECUTE PROCEDURE imq_pick_new(p_name, p_batch_key, v_size, 'A', p_counted, p_active, NULL, p_walk, p_take, NULL)
                RETURNING_VALUES still_wanted, v_last;
            still_wanted = p_size - v_size + still_wanted;
        END
        UPDATE mq_polled SET scanned_at = mq_utc_now() WHERE name = :p_name;
    END
END

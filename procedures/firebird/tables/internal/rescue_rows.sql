-- rescue_rows: make the entries of expired leases due again.
-- Transaction: joins the caller's, which is NO WAIT; skips claims that are being finished or extended
CREATE OR ALTER PROCEDURE imq_rescue_rows (p_name mq_name)
AS
DECLARE v_now timestamp;
DECLARE v_key mq_key;
DECLARE v_mine integer;
BEGIN
    v_now = mq_utc_now();
    FOR SELECT batch_key FROM mq_polled_batch WHERE name = :p_name AND lease_until <= :v_now
        PLAN (mq_polled_batch ORDER mq_polled_batch_lease)
        ORDER BY name, lease_until
        INTO v_key
    DO
    BEGIN
        BEGIN
            -- Check the lease again: a heartbeat may have extended it since.
            DELETE FROM mq_polled_batch WHERE batch_key = :v_key AND lease_until <= :v_now;
            v_mine = ROW_COUNT;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_mine = 0;
        END
        IF (v_mine = 1) THEN
            UPDATE mq_polled_row SET state = 'N', batch_key = NULL, run_at = :v_now, error = 'lease expired'
            WHERE batch_key = :v_key;
    END
END

-- try_polled: lock a row of a polling table's claims for try_lock, which handles the conflicts: p_table is polled or
-- polled_batch. Replaces the file of the same name in common/internal.
CREATE OR ALTER PROCEDURE imq_try_polled (p_table varchar(13) CHARACTER SET ASCII, p_name mq_argument)
RETURNS (locked integer, number bigint)
AS
DECLARE v_until timestamp;
DECLARE v_place TYPE OF COLUMN mq_polled.place;
DECLARE v_ident mq_ident;
DECLARE v_copies integer;
BEGIN
    /*!5 IF (p_table = 'polled_batch') THEN
        FOR SELECT 1 AS one FROM mq_polled_batch WHERE batch_key = :p_name WITH LOCK SKIP LOCKED INTO number AS CURSOR c DO
            locked = 1;
    ELSE
        FOR SELECT 1 AS one FROM mq_polled WHERE name = :p_name WITH LOCK SKIP LOCKED INTO number AS CURSOR d DO
            locked = 1;
    IF (locked IS NULL AND (
        p_table = 'polled_batch' AND EXISTS (SELECT * FROM mq_polled_batch WHERE batch_key = :p_name)
        OR p_table = 'polled' AND EXISTS (SELECT * FROM mq_polled WHERE name = :p_name))) THEN
        locked = 0;
    EXIT; */
    IF (p_table = 'polled_batch') THEN
    BEGIN
        SELECT 1, lease_until FROM mq_polled_batch WHERE batch_key = :p_name INTO number, v_until;
        UPDATE mq_polled_batch SET lease_seconds = lease_seconds WHERE batch_key = :p_name AND lease_until = :v_until;
    END
    ELSE
    BEGIN
        SELECT 1, place, place_ident, copies FROM mq_polled WHERE name = :p_name INTO number, v_place, v_ident, v_copies;
        UPDATE mq_polled SET consumer = consumer
        WHERE name = :p_name AND place IS NOT DISTINCT FROM :v_place AND place_ident IS NOT DISTINCT FROM :v_ident
            AND copies IS NOT DISTINCT FROM :v_copies;
    END
    locked = IIF(ROW_COUNT > 0, 1, IIF(number IS NULL, NULL, 0));
END

-- try_polled: lock a row of a polling table's claims for try_lock, which handles the conflicts: p_table is polled or
-- polled_batch. Replaces the file of the same name in common/internal.
-- This variant for Firebird 5.0 and later replaces try_polled.sql: see try_lock.5.sql.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_try_polled (p_table varchar(13) CHARACTER SET ASCII, p_name mq_argument)
RETURNS (locked integer, number bigint)
AS
BEGIN
    IF (p_table = 'polled_batch') THEN
        FOR SELECT 1 AS one FROM mq_polled_batch WHERE batch_key = :p_name WITH LOCK SKIP LOCKED INTO number AS CURSOR c DO
            locked = 1;
    ELSE
        FOR SELECT 1 AS one FROM mq_polled WHERE name = :p_name WITH LOCK SKIP LOCKED INTO number AS CURSOR d DO
            locked = 1;
    IF (locked IS NULL AND (
        p_table = 'polled_batch' AND EXISTS (SELECT * FROM mq_polled_batch WHERE batch_key = :p_name)
        OR p_table = 'polled' AND EXISTS (SELECT * FROM mq_polled WHERE name = :p_name))) THEN
        locked = 0;
END^
SET TERM ; ^

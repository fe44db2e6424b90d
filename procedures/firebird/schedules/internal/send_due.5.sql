-- send_due: send the messages of the schedules of a type that are due.
-- Transaction: joins the caller's; skips schedules that another transaction has locked
-- This variant for Firebird 5.0 and later replaces send_due.sql: see take_ready.5.sql.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_send_due (p_type mq_name, p_size integer)
AS
-- After the clock was set back by more than this, the next time is set again. After a smaller step nothing is sent twice,
-- as in cron.
DECLARE c_set_back integer = 3;
DECLARE v_now timestamp; DECLARE v_ahead timestamp;
DECLARE v_name mq_name;
BEGIN
    v_now = mq_utc_now();
    v_ahead = DATEADD(c_set_back HOUR TO v_now);
    FOR SELECT s.name
        FROM mq_schedule AS s
        WHERE s.type = :p_type AND (s.next_at <= :v_now OR s.moved_at > :v_ahead)
        PLAN (s ORDER mq_schedule_due)
        ORDER BY s.type, s.next_at
        WITH LOCK SKIP LOCKED
        INTO v_name AS CURSOR c
    DO
    BEGIN
        EXECUTE PROCEDURE imq_move_schedule(v_name, v_now);
        p_size = p_size - 1;
        IF (p_size = 0) THEN
            LEAVE;
    END
END^
SET TERM ; ^

-- send_due: send the messages of the schedules of a type that are due.
-- Arguments:   p_type, p_size (the most schedules)
-- Transaction: joins the caller's, which is NO WAIT; skips schedules that another transaction has locked
--
-- The first claim of each second calls this. The call locks the row of a schedule, sends its message and sets its next
-- time in one transaction. So each time is sent once, even after a crash. One message makes up for all times that have
-- passed. Replaces the file of the same name in queue/internal.
--
-- Before 5.0, the call first locks a row of mq_stripe, which never changes: a row that many transactions try to change can
-- keep a rolled-back value, and then a time would be lost. See docs/decisions/0008_firebird.md.
CREATE OR ALTER PROCEDURE imq_send_due (p_type mq_name, p_size integer)
AS
-- After the clock was set back by more than this, the next time is set again. After a smaller step nothing is sent twice,
-- as in cron.
DECLARE c_set_back integer = 3;
DECLARE v_now timestamp; DECLARE v_ahead timestamp; DECLARE v_next_at timestamp;
DECLARE v_name mq_name;
DECLARE v_mine integer;
BEGIN
    v_now = mq_utc_now();
    v_ahead = DATEADD(c_set_back HOUR TO v_now);
    FOR SELECT s.name, s.next_at
        FROM mq_schedule AS s
        WHERE s.type = :p_type AND (s.next_at <= :v_now OR s.moved_at > :v_ahead)
        PLAN (s ORDER mq_schedule_due)
        ORDER BY s.type, s.next_at
        /*!5 WITH LOCK SKIP LOCKED */
        INTO v_name, v_next_at AS CURSOR c
    DO
    BEGIN
        v_mine = 0;
        /*!5 v_mine = 1; */
        IF (v_mine = 0) THEN
        BEGIN
            EXECUTE PROCEDURE imq_lock_group('mq_schedule', v_name) RETURNING_VALUES v_mine;
            IF (v_mine = 1) THEN
            BEGIN
                UPDATE mq_schedule SET moved_at = :v_now WHERE name = :v_name AND next_at IS NOT DISTINCT FROM :v_next_at;
                v_mine = ROW_COUNT;
            END
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_mine = 0;
        END
        IF (v_mine = 1) THEN
        BEGIN
            EXECUTE PROCEDURE imq_move_schedule(v_name, v_now);
            p_size = p_size - 1;
        END
        IF (p_size = 0) THEN
            LEAVE;
    END
END

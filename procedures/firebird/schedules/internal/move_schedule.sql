-- move_schedule: send a schedule's message if it is due, and set its next time.
-- Arguments:   p_name (of the schedule, whose row is locked), p_now
CREATE OR ALTER PROCEDURE imq_move_schedule (p_name mq_name, p_now timestamp)
AS
DECLARE v_next_at timestamp;
DECLARE v_cron mq_name; DECLARE v_zone mq_name;
DECLARE v_lives smallint;
DECLARE v_id bigint;
BEGIN
    SELECT s.next_at, s.cron, s.time_zone, imq_last_lives(s.last_id, s.overlap) FROM mq_schedule AS s WHERE s.name = :p_name
    INTO v_next_at, v_cron, v_zone, v_lives;
    IF (v_next_at <= p_now AND v_lives = 0) THEN
        EXECUTE PROCEDURE imq_send_occurrence(p_name, v_next_at) RETURNING_VALUES v_id;
    BEGIN
        EXECUTE PROCEDURE imq_require_zone(v_zone);
        v_next_at = imq_next_time(v_cron, p_now, v_zone);
        WHEN EXCEPTION mq_50002 DO
            -- The database may have been restored to a server that does not know the zone. Claims must still work;
            -- queue_health reports the schedule.
            v_next_at = NULL;
    END
    UPDATE mq_schedule SET next_at = :v_next_at, moved_at = :p_now WHERE name = :p_name;
END

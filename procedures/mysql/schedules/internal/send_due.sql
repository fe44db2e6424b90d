-- send_due: send the messages of the schedules of a type that are due.
-- Arguments:   p_type, p_size (the most schedules)
-- Transaction: joins the caller's; skips schedules that another transaction has locked
--
-- The first claim of each second calls this. The call locks the row of a schedule, sends its message and sets its next
-- time in one transaction. So each time is sent once, even after a crash. One message makes up for all times that have
-- passed.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_send_due(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- After the clock was set back by more than this, the next time is set again. After a smaller step nothing is sent
    -- twice, as in cron.
    DECLARE c_set_back int DEFAULT 3;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_names longtext CHARACTER SET utf8mb4;
    DECLARE v_name, v_cron, v_zone varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_due, v_next_at datetime(6);
    DECLARE v_overlap, v_lives tinyint;
    DECLARE v_last_id, v_id bigint;
    DECLARE i int DEFAULT 0;
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(s.name) ORDER BY s.next_at), ']') INTO v_names
    FROM (
        SELECT name, next_at FROM mq_schedule FORCE INDEX (schedule_due)
        WHERE type = p_type AND (next_at <= v_now OR moved_at > v_now + INTERVAL c_set_back HOUR)
        ORDER BY next_at LIMIT p_size FOR UPDATE SKIP LOCKED
    ) AS s;
    WHILE i < COALESCE(JSON_LENGTH(v_names), 0) DO
        SET v_name = JSON_UNQUOTE(JSON_EXTRACT(v_names, CONCAT('$[', i, ']'))), v_next_at = NULL, i = i + 1;
        SELECT cron, time_zone, next_at, overlap, last_id INTO v_cron, v_zone, v_due, v_overlap, v_last_id
        FROM mq_schedule WHERE name = v_name FOR UPDATE;
        IF v_due <= v_now THEN
            CALL imq_last_lives(v_last_id, v_overlap, v_lives);
            IF NOT v_lives THEN
                CALL imq_send_occurrence(v_name, v_due, v_id);
            END IF;
        END IF;
        BEGIN
            -- The database may have been restored to a server that does not know the zone. Claims must still work;
            -- queue_health reports the schedule.
            DECLARE CONTINUE HANDLER FOR SQLSTATE '45000' SET v_next_at = NULL;
            CALL imq_next_time(v_cron, v_now, v_zone, v_next_at);
        END;
        UPDATE mq_schedule SET next_at = v_next_at, moved_at = v_now WHERE name = v_name;
    END WHILE;
END

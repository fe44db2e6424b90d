-- set_schedule: send a message at each time of a cron expression; a call with an existing name changes that schedule.
-- Arguments:   p_name, p_type, p_cron (see next_occurrence), p_body (up to 16 MiB), p_options (a flat JSON object):
--              time_zone (default UTC), headers (a text of up to 64 KiB), priority (-32,768 to 32,767; 0), group_key,
--              overlap (1: a time is skipped while the last message is new; 0: also while it is active; 1); names and keys
--              have 1 to 200 characters
-- Returns:     created (1 when the schedule is new), next_at
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one name wait for each other
-- Example:     CALL mq_set_schedule('nightly', 'report', '30 2 * * *', '{}', '{"time_zone": "Europe/Paris"}');
--
-- A schedule with unchanged cron and time zone keeps its next time. So a program can call this at each start: no due time
-- is lost or repeated.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_set_schedule(
    IN p_name longtext CHARACTER SET utf8mb4, IN p_type longtext CHARACTER SET utf8mb4,
    IN p_cron longtext CHARACTER SET utf8mb4, IN p_body longtext CHARACTER SET utf8mb4,
    IN p_options longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_read, v_zone, v_headers, v_group_key longtext CHARACTER SET utf8mb4;
    DECLARE v_priority, v_overlap int;
    DECLARE v_next_at datetime(6);
    DECLARE v_created, v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('name', p_name, 0);
    CALL imq_require_name('type', p_type, 0);
    CALL imq_read_options(p_options, 'options', '{"time_zone": "text", "headers": "text", "priority": [-32768, 32767],
        "group_key": "text", "overlap": [0, 1]}', NULL, v_read);
    SELECT COALESCE(j.time_zone, 'UTC'), j.headers, COALESCE(j.priority, 0), j.group_key, COALESCE(j.overlap, 1)
    INTO v_zone, v_headers, v_priority, v_group_key, v_overlap
    FROM JSON_TABLE(v_read, '$' COLUMNS (time_zone longtext CHARACTER SET utf8mb4 PATH '$.time_zone',
        headers longtext CHARACTER SET utf8mb4 PATH '$.headers', priority int PATH '$.priority',
        group_key longtext CHARACTER SET utf8mb4 PATH '$.group_key', overlap int PATH '$.overlap')) AS j;
    CALL imq_require_message(p_body, NULL, v_priority, v_group_key, NULL, NULL, v_headers, NULL, NULL, NULL);
    CALL imq_require_zone(v_zone);
    CALL imq_next_time(p_cron, v_now, v_zone, v_next_at);
    IF v_next_at IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'cron: no date matches in the next 50 years');
    END IF;

    CALL imq_begin_call(0, v_own);
    INSERT INTO mq_schedule (name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at, moved_at)
    VALUES (p_name, p_type, p_cron, v_zone, p_body, v_headers, v_priority, v_group_key, v_overlap, v_next_at,
        v_now)
    -- A real change, which counts as two rows: some drivers count an unchanged row as one, like a new row.
    ON DUPLICATE KEY UPDATE overlap = 1 - mq_schedule.overlap;
    SET v_created = ROW_COUNT() = 1;
    IF NOT v_created THEN
        -- Assigned from left to right: the times first, while cron and time zone still have their old values.
        UPDATE mq_schedule AS s
        SET s.next_at = IF(s.cron = p_cron AND s.time_zone = v_zone, COALESCE(s.next_at, v_next_at), v_next_at),
            s.moved_at = IF(s.cron = p_cron AND s.time_zone = v_zone, s.moved_at, v_now),
            s.type = p_type,
            s.cron = p_cron,
            s.time_zone = v_zone,
            s.body = p_body,
            s.headers = v_headers,
            s.priority = v_priority,
            s.group_key = v_group_key,
            s.overlap = v_overlap
        WHERE s.name = p_name;
        SELECT next_at INTO v_next_at FROM mq_schedule WHERE name = p_name;
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_created AS created, v_next_at AS next_at;
END

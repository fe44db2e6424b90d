-- add_queue: give a type a policy of its own, with the default settings, if it has none.
-- Transaction: joins the caller's; calls for one type wait for each other

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_add_queue(IN p_type varchar(200) CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_lease_seconds, v_max_attempts, v_backoff_seconds, v_backoff_max_seconds int;
    DECLARE v_on_complete varchar(10) CHARACTER SET ascii;
    DECLARE v_ordered, v_notify, v_ring, v_fair, v_stops, v_paused, v_converted tinyint;
    -- Not INSERT IGNORE: its shared lock on an existing row would deadlock two callers. Not INSERT ... SELECT: after such
    -- a read, MariaDB fails if a row changed while the statement waited for it.
    SELECT lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, ring, fair,
        dead_stops_group, paused, converted
    INTO v_lease_seconds, v_max_attempts, v_backoff_seconds, v_backoff_max_seconds, v_on_complete, v_ordered, v_notify, v_ring,
        v_fair, v_stops, v_paused, v_converted
    FROM mq_queue WHERE type = '';
    INSERT INTO mq_queue (type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered,
        notify, ring, fair, dead_stops_group, paused, converted)
    VALUES (p_type, v_lease_seconds, v_max_attempts, v_backoff_seconds, v_backoff_max_seconds, v_on_complete, v_ordered,
        v_notify, v_ring, v_fair, v_stops, v_paused, v_converted)
    ON DUPLICATE KEY UPDATE mq_queue.paused = mq_queue.paused;
END

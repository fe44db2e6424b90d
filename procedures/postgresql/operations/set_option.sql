-- set_option: change one setting of a queue.
-- Arguments:   p_type (1 to 200 characters), p_option (the name of a setting, see set_queue), p_value (NULL: the default)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50004 queue_not_empty, 50009 area_missing: as set_queue
-- Transaction: as set_queue
-- Example:     SELECT * FROM mq.set_option('invoice', 'max_attempts', '5');
CREATE OR REPLACE FUNCTION mq.set_option(
    p_type text,
    p_option text,
    p_value text DEFAULT NULL,
    OUT type text, OUT lease_seconds integer, OUT max_attempts integer, OUT backoff_seconds integer,
    OUT backoff_max_seconds integer, OUT on_complete text, OUT ordered smallint, OUT notify smallint,
    OUT max_active integer, OUT rate integer, OUT rate_seconds integer, OUT group_max_active integer,
    OUT group_rate integer, OUT group_rate_seconds integer, OUT paused smallint, OUT ring smallint, OUT fair smallint,
    OUT dead_stops_group smallint, OUT known smallint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    PERFORM mq_internal.require_name('option', p_option, false);
    SELECT * INTO type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify,
        max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, paused, ring, fair,
        dead_stops_group, known
    FROM mq.set_queue(p_type, json_build_object(p_option, CASE
        WHEN p_value ~ '^-?[0-9]{1,18}$' THEN to_json(p_value::bigint) ELSE to_json(p_value) END)::text);
END
$$;

-- group_limits: the limits of a group: its own, or those of its queue.
-- Returns:     one row: places (1 in an ordered queue; 0: no limit), rate (0: no limit), rate_seconds
CREATE OR ALTER PROCEDURE imq_group_limits (p_type mq_name, p_group_key mq_name)
RETURNS (places integer, rate integer, rate_seconds integer)
AS
DECLARE v_ordered smallint;
BEGIN
    SELECT ordered, group_max_active, group_rate, group_rate_seconds FROM imq_policy(:p_type)
    INTO v_ordered, places, rate, rate_seconds;
    SELECT COALESCE(max_active, :places), COALESCE(rate, :rate), COALESCE(rate_seconds, :rate_seconds)
    FROM mq_queue_group WHERE type = :p_type AND group_key = :p_group_key
    INTO places, rate, rate_seconds;
    IF (v_ordered = 1) THEN
        places = 1;
    SUSPEND;
END

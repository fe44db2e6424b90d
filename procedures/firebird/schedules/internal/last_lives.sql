-- last_lives: whether the last message of a schedule prevents the next one.
-- Arguments:   p_last_id and p_overlap (of the schedule)
-- Returns:     1 while the last message is new, and without overlap also while it is active; a dead letter does not
--              prevent the next one
CREATE OR ALTER FUNCTION imq_last_lives (p_last_id bigint, p_overlap smallint)
RETURNS smallint
AS
DECLARE v_type mq_name; DECLARE v_group_key mq_name;
DECLARE v_grouped smallint;
BEGIN
    SELECT m.type, COALESCE(m.group_key, '') FROM mq_message AS m WHERE m.id = :p_last_id INTO v_type, v_group_key;
    IF (v_type IS NULL OR EXISTS (SELECT * FROM mq_dead WHERE id = :p_last_id)) THEN
        RETURN 0;
    SELECT grouped FROM imq_policy(:v_type) INTO v_grouped;
    -- A message without any of these rows is active.
    IF (p_overlap = 0 OR EXISTS (SELECT * FROM mq_delayed WHERE id = :p_last_id)
        OR EXISTS (SELECT * FROM mq_grouped WHERE type = :v_type AND group_key = :v_group_key AND id = :p_last_id)
        OR v_grouped = 0 AND EXISTS (
            SELECT * FROM imq_find_ready(:v_type, :p_last_id)
        ))
    THEN
        RETURN 1;
    RETURN 0;
END

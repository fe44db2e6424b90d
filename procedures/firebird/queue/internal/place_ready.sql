-- place_ready: insert a ready message, or its group's ticket, into mq_ready in claim order.
-- Returns:     placed_at: the run_at of the new row in mq_ready
--
-- The position may already be taken: by a row of a transaction that is rolling back, or, in a grouped queue, by an old
-- ticket that another claim is dropping. Then the new row goes just before it.
CREATE OR ALTER PROCEDURE imq_place_ready (
    p_type mq_name, p_priority smallint, p_run_at timestamp, p_id bigint, p_attempts smallint
)
RETURNS (placed_at timestamp)
AS
DECLARE v_tries integer = 0;
DECLARE v_lane mq_lane;
BEGIN
    IF ((SELECT fair FROM imq_policy(:p_type)) = 1) THEN
        v_lane = LPAD(p_priority + 32768, 5, '0') || COALESCE((SELECT m.group_key FROM mq_message AS m WHERE m.id = :p_id), '');
    WHILE (placed_at IS NULL) DO
    BEGIN
        INSERT INTO mq_ready (type, priority, run_at, id, attempts, lane)
        VALUES (:p_type, :p_priority, DATEADD(-:v_tries MILLISECOND TO :p_run_at), :p_id, :p_attempts, :v_lane);
        placed_at = DATEADD(-v_tries MILLISECOND TO p_run_at);
        WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            v_tries = v_tries + 1;
            IF (v_tries = 1000) THEN
                EXCEPTION;
        END
    END
END

-- wait_for_any: report at once whether a message of one of several types is ready.
-- Arguments:   p_types (1 to 1,000 types, one per line, in the format of send_batch), p_seconds (0 to 3,600 or NULL; checked
--              but not used)
-- Returns:     type (the first one of the list that is ready; if none is, the one with the earliest next_run_at, paused
--              queues apart; NULL if nothing is expected), ready, next_run_at and reason: as wait_for_message returns them
--              for this type; if type is NULL, the reason is that of the first type of the list
-- Errors:      50002 invalid_argument
-- Transaction: reads only; a snapshot does not see messages sent later
-- Example:     SELECT * FROM mq_wait_for_any('email' || ASCII_CHAR(10) || 'invoice');
--
-- To wait, register for the events of all these types: see wait_for_message.
CREATE OR ALTER PROCEDURE mq_wait_for_any (
    p_types mq_text,
    p_seconds bigint = NULL
)
RETURNS (type mq_name, ready smallint, next_run_at timestamp, reason varchar(7) CHARACTER SET ASCII)
AS
DECLARE v_type mq_name;
DECLARE v_ready smallint;
DECLARE v_next_run_at timestamp;
DECLARE v_reason varchar(7) CHARACTER SET ASCII;
BEGIN
    EXECUTE PROCEDURE imq_require_record_version;
    EXECUTE PROCEDURE imq_require_range('seconds', p_seconds, 0, 3600);
    ready = 0;
    FOR SELECT t.type FROM imq_read_types(:p_types) AS t INTO v_type DO
    BEGIN
        EXECUTE PROCEDURE mq_wait_for_message(v_type) RETURNING_VALUES v_ready, v_next_run_at, v_reason;
        reason = COALESCE(reason, v_reason);
        IF (v_ready = 1 OR v_reason <> 'paused' AND v_next_run_at < COALESCE(next_run_at, CAST('9999-12-31' AS timestamp))) THEN
        BEGIN
            type = v_type;
            ready = v_ready;
            next_run_at = v_next_run_at;
            reason = v_reason;
        END
        IF (v_ready = 1) THEN
            LEAVE;
    END
    SUSPEND;
END

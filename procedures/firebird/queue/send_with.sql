-- send_with: send one message with options, which are a JSON object.
-- Arguments:   p_type, p_body (up to 16 MiB), p_options (a flat JSON object): run_at (a time with its zone, from 1970 to ten
--              years ahead; default now), delay_seconds (0 to 315,360,000, instead of run_at), priority (-32,768 to 32,767,
--              smaller first; 0), group_key, dedup_key, on_conflict (keep, replace or postpone a live message that has the
--              same dedup_key; keep), max_attempts (1 to 1,000; the queue's), headers (a text of up to 64 KiB), source (the
--              application name); names and keys have 1 to 200 characters
-- Returns:     as send_message
-- Errors:      50001 wrong_isolation (replace or postpone), 50002 invalid_argument
-- Transaction: as send_message
-- Example:     SELECT * FROM mq_send_with('email', '{}', '{"dedup_key": "a-1", "delay_seconds": 60}');
CREATE OR ALTER PROCEDURE mq_send_with (
    p_type mq_argument,
    p_body mq_text,
    p_options mq_text = NULL
)
RETURNS (id bigint, created smallint, changed smallint, state varchar(1) CHARACTER SET ASCII)
AS
DECLARE v_run_at timestamp; DECLARE v_priority bigint; DECLARE v_group_key mq_argument; DECLARE v_dedup_key mq_argument;
DECLARE v_max_attempts bigint; DECLARE v_headers mq_text; DECLARE v_source mq_argument; DECLARE v_delay_seconds bigint;
DECLARE v_on_conflict mq_text;
BEGIN
    SELECT run_at, priority, group_key, dedup_key, max_attempts, headers, source, delay_seconds, on_conflict
    FROM imq_send_options(:p_options)
    INTO v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source, v_delay_seconds, v_on_conflict;
    EXECUTE PROCEDURE mq_send_message(p_type, p_body, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers,
        v_source, v_delay_seconds, v_on_conflict) RETURNING_VALUES id, created, changed, state;
    SUSPEND;
END

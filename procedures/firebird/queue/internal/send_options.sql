-- send_options: the options of a message that is sent, checked as far as JSON goes; see require_message.
-- Arguments:   p_options, p_batch (1: of send_batch, where dedup_key and on_conflict are not known)
CREATE OR ALTER PROCEDURE imq_send_options (p_options mq_text, p_batch smallint = 0)
RETURNS (
    run_at timestamp, priority bigint, group_key mq_argument, dedup_key mq_argument, max_attempts bigint, headers mq_text,
    source mq_argument, delay_seconds bigint, on_conflict mq_text
)
AS
DECLARE v_option varchar(40) CHARACTER SET ASCII; DECLARE v_number bigint; DECLARE v_moment timestamp; DECLARE v_text mq_text;
BEGIN
    FOR
        SELECT o.name, o.number, o.moment, o.text
        FROM imq_read_options(:p_options, 'options', ';delay_seconds:0:315360000;' || TRIM(IIF(:p_batch = 1, '', 'dedup_key:key;'))
            || 'group_key:key;headers:text;max_attempts:1:1000;' || TRIM(IIF(:p_batch = 1, '', 'on_conflict:text;'))
            || 'priority:-32768:32767;run_at:time;source:key;') AS o
        INTO v_option, v_number, v_moment, v_text
    DO
    BEGIN
        run_at = IIF(v_option = 'run_at', v_moment, run_at);
        priority = IIF(v_option = 'priority', v_number, priority);
        group_key = IIF(v_option = 'group_key', v_text, group_key);
        dedup_key = IIF(v_option = 'dedup_key', v_text, dedup_key);
        max_attempts = IIF(v_option = 'max_attempts', v_number, max_attempts);
        headers = IIF(v_option = 'headers', v_text, headers);
        source = IIF(v_option = 'source', v_text, source);
        delay_seconds = IIF(v_option = 'delay_seconds', v_number, delay_seconds);
        on_conflict = IIF(v_option = 'on_conflict', v_text, on_conflict);
    END
    SUSPEND;
END

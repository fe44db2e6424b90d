-- require_message: check the arguments of one message except its type; NULL means the default where there is one.
--
-- NULL arguments are not checked: a call costs each sender more than the test for NULL.
CREATE OR ALTER PROCEDURE imq_require_message (
    p_body mq_text, p_run_at timestamp, p_priority bigint, p_group_key mq_argument, p_dedup_key mq_argument,
    p_max_attempts bigint, p_headers mq_text, p_source mq_argument, p_delay_seconds bigint, p_on_conflict mq_text
)
AS
BEGIN
    IF (p_body IS NULL OR OCTET_LENGTH(p_body) > 16777216) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    -- Some client libraries cannot represent earlier years.
    IF (p_run_at > DATEADD(315360000 SECOND TO mq_utc_now()) OR p_run_at < TIMESTAMP '1970-01-01 00:00:00') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'run_at: must be from 1970 to at most 315,360,000 seconds (ten years) ahead');
    IF (p_priority IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_range('priority', p_priority, -32768, 32767);
    IF (p_group_key IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_name('group_key', p_group_key, 1);
    IF (p_dedup_key IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_name('dedup_key', p_dedup_key, 1);
    IF (p_max_attempts IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_range('max_attempts', p_max_attempts, 1, 1000);
    IF (OCTET_LENGTH(p_headers) > 65536) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    IF (p_headers IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_headers(p_headers);
    IF (p_source IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_name('source', p_source, 1);
    IF (p_delay_seconds IS NOT NULL) THEN
    BEGIN
        EXECUTE PROCEDURE imq_require_range('delay_seconds', p_delay_seconds, 0, 315360000);
        IF (p_run_at IS NOT NULL) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'delay_seconds: must be NULL when run_at is given');
    END
    IF (p_on_conflict IS NOT NULL) THEN
    BEGIN
        -- LIKE, because = ignores trailing blanks: 'keep ' would equal 'keep'.
        IF (p_on_conflict NOT LIKE 'keep' AND p_on_conflict NOT LIKE 'replace' AND p_on_conflict NOT LIKE 'postpone') THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'on_conflict: must be keep, replace or postpone');
        IF (p_on_conflict <> 'keep') THEN
        BEGIN
            IF (p_dedup_key IS NULL) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'on_conflict: replace and postpone need a dedup_key');
            -- A message that a claim has locked is skipped, as in cancel; that needs READ COMMITTED.
            EXECUTE PROCEDURE imq_require_read_committed;
        END
    END
END

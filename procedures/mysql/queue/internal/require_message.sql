-- require_message: check the arguments of one message except its type; NULL means the default where there is one.
--
-- NULL arguments are not checked: a call costs each sender more than the test for NULL.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_message(
    IN p_body longtext CHARACTER SET utf8mb4, IN p_run_at datetime(6), IN p_priority bigint,
    IN p_group_key longtext CHARACTER SET utf8mb4, IN p_dedup_key longtext CHARACTER SET utf8mb4,
    IN p_max_attempts bigint, IN p_headers longtext CHARACTER SET utf8mb4, IN p_source longtext CHARACTER SET utf8mb4,
    IN p_delay_seconds bigint, IN p_on_conflict longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    IF p_body IS NULL OR LENGTH(p_body) > 16777216 THEN
        CALL imq_raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    -- Some client libraries cannot represent earlier years.
    IF p_run_at > UTC_TIMESTAMP(6) + INTERVAL 315360000 SECOND OR p_run_at < TIMESTAMP '1970-01-01 00:00:00' THEN
        CALL imq_raise_error('invalid_argument', 'run_at: must be from 1970 to at most 315,360,000 seconds (ten years) ahead');
    END IF;
    IF p_priority IS NOT NULL THEN
        CALL imq_require_range('priority', p_priority, -32768, 32767);
    END IF;
    IF p_group_key IS NOT NULL THEN
        CALL imq_require_name('group_key', p_group_key, 1);
    END IF;
    IF p_dedup_key IS NOT NULL THEN
        CALL imq_require_name('dedup_key', p_dedup_key, 1);
    END IF;
    IF p_max_attempts IS NOT NULL THEN
        CALL imq_require_range('max_attempts', p_max_attempts, 1, 1000);
    END IF;
    IF LENGTH(p_headers) > 65536 THEN
        CALL imq_raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    END IF;
    IF p_headers IS NOT NULL THEN
        CALL imq_require_headers(p_headers);
    END IF;
    IF p_source IS NOT NULL THEN
        CALL imq_require_name('source', p_source, 1);
    END IF;
    IF p_delay_seconds IS NOT NULL THEN
        CALL imq_require_range('delay_seconds', p_delay_seconds, 0, 315360000);
        IF p_run_at IS NOT NULL THEN
            CALL imq_raise_error('invalid_argument', 'delay_seconds: must be NULL when run_at is given');
        END IF;
    END IF;
    IF p_on_conflict IS NOT NULL THEN
        -- Compare bytes: some collations treat 'Keep' or 'keep ' as equal to 'keep'.
        IF CAST(p_on_conflict AS binary) NOT IN ('keep', 'replace', 'postpone') THEN
            CALL imq_raise_error('invalid_argument', 'on_conflict: must be keep, replace or postpone');
        ELSEIF p_on_conflict <> 'keep' AND p_dedup_key IS NULL THEN
            CALL imq_raise_error('invalid_argument', 'on_conflict: replace and postpone need a dedup_key');
        END IF;
    END IF;
END

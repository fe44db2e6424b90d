-- read_outcomes: read the list of outcomes that finish_batch, finish_messages and finish_rows take.
-- Arguments:   p_outcomes (a flat JSON object per line: id, error, retry_after_seconds, dead, released), p_check (0: ids may
--              repeat)
-- Returns:     id, retry (NULL: the default backoff; -1: dead; -2: released), error (cut at 4,000 characters; NULL: did not
--              fail)
CREATE OR ALTER PROCEDURE imq_read_outcomes (p_outcomes mq_text, p_check smallint = 1)
RETURNS (id bigint, retry integer, error mq_error)
AS
DECLARE v_n integer; DECLARE v_repeats integer;
DECLARE v_item mq_text; DECLARE v_text mq_text;
DECLARE v_line varchar(40) CHARACTER SET UTF8;
DECLARE v_name varchar(1001) CHARACTER SET UTF8;
DECLARE v_kind varchar(7) CHARACTER SET ASCII;
-- The values; a text is only its opening quote.
DECLARE v_id varchar(30) CHARACTER SET ASCII; DECLARE v_retry varchar(30) CHARACTER SET ASCII;
DECLARE v_dead varchar(30) CHARACTER SET ASCII; DECLARE v_released varchar(30) CHARACTER SET ASCII;
DECLARE v_problem varchar(200) CHARACTER SET UTF8;
DECLARE v_highest bigint = -1;
DECLARE v_sorted smallint = 1;
BEGIN
    FOR SELECT n, item FROM imq_split_list('outcomes', :p_outcomes, 0) INTO v_n, v_item DO
    BEGIN
        v_line = 'outcomes: line ' || v_n;
        v_id = NULL;
        v_retry = NULL;
        v_dead = NULL;
        v_released = NULL;
        error = NULL;
        v_problem = NULL;
        FOR SELECT name, text, kind FROM imq_read_object(:v_item, :v_line) INTO v_name, v_text, v_kind DO
        BEGIN
            -- With a character at its end: a comparison ignores trailing blanks.
            v_name = v_name || '.';
            IF (v_name = 'error.') THEN
            BEGIN
                IF (v_kind NOT IN ('string', 'null')) THEN
                    v_problem = 'error must be a text';
                error = SUBSTRING(v_text FROM 1 FOR 4000);
            END
            ELSE
            BEGIN
                v_kind = IIF(v_kind = 'string', '"', NULL);
                IF (v_name = 'id.') THEN
                    v_id = COALESCE(v_kind, SUBSTRING(v_text FROM 1 FOR 30));
                ELSE IF (v_name = 'retry_after_seconds.') THEN
                    v_retry = COALESCE(v_kind, SUBSTRING(v_text FROM 1 FOR 30));
                ELSE IF (v_name = 'dead.') THEN
                    v_dead = COALESCE(v_kind, SUBSTRING(v_text FROM 1 FOR 30));
                ELSE IF (v_name = 'released.') THEN
                    v_released = COALESCE(v_kind, SUBSTRING(v_text FROM 1 FOR 30));
                ELSE
                    EXECUTE PROCEDURE imq_raise_error('invalid_argument', v_line
                        || ': the names are id, error, retry_after_seconds, dead and released, not '
                        || LEFT(v_name, CHAR_LENGTH(v_name) - 1));
            END
        END
        v_problem = CASE
            WHEN v_id IS NULL OR v_id NOT SIMILAR TO '[0-9]{1,18}' THEN 'id must be a number of 1 to 18 digits'
            WHEN v_problem IS NOT NULL THEN v_problem
            WHEN v_retry NOT SIMILAR TO '[0-9]{1,9}' OR LPAD(v_retry, 9, '0') > '315360000'
                THEN 'retry_after_seconds must be 0 to 315,360,000'
            WHEN v_dead NOT IN ('true', '1', 'false', '0') THEN 'dead must be 0 or 1'
            WHEN v_released NOT IN ('true', '1', 'false', '0') THEN 'released must be 0 or 1'
            WHEN error IS NULL AND (v_retry IS NOT NULL OR v_dead IN ('true', '1'))
                THEN 'retry_after_seconds and dead need an error'
            WHEN v_retry IS NOT NULL AND v_dead IN ('true', '1') THEN 'dead excludes retry_after_seconds'
            WHEN error IS NOT NULL AND v_released IN ('true', '1') THEN 'released excludes error'
        END;
        IF (v_problem IS NOT NULL) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', v_line || ': ' || v_problem);
        id = v_id;
        retry = CAST(CASE WHEN v_released IN ('true', '1') THEN '-2' WHEN v_dead IN ('true', '1') THEN '-1' ELSE v_retry END AS integer);
        v_sorted = IIF(id > v_highest, v_sorted, 0);
        v_highest = MAXVALUE(id, v_highest);
        SUSPEND;
    END
    IF (v_sorted = 0 AND p_check = 1) THEN
    BEGIN
        SELECT COUNT(*) - COUNT(DISTINCT o.id) FROM imq_read_outcomes(:p_outcomes, 0) AS o INTO v_repeats;
        IF (v_repeats > 0) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'outcomes: an id is given twice');
    END
END

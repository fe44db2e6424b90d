-- read_failures: read the list of failures that finish_batch and finish_rows take.
-- Arguments:   p_failures (one per line: id,retry_after_seconds,error; a line that does not begin with two such fields
--              continues the error above it)
-- Returns:     id, retry (NULL: the queue's backoff), error (cut at 4,000 characters)
CREATE OR ALTER PROCEDURE imq_read_failures (p_failures mq_text)
RETURNS (id bigint, retry integer, error mq_error)
AS
DECLARE c_error integer = 4000;
DECLARE v_n integer; DECLARE v_last integer;
DECLARE v_item mq_text;
DECLARE v_quoted smallint = 1;
DECLARE v_head mq_error;
DECLARE v_good smallint;
DECLARE v_retry integer; DECLARE v_comma integer;
DECLARE v_error mq_text;
DECLARE v_said varchar(200) CHARACTER SET UTF8;
BEGIN
    FOR SELECT n, item FROM imq_split_list('failures', :p_failures, 0) INTO v_n, v_item DO
    BEGIN
        -- The longest valid head: 18 digits, a comma, 9 digits and a comma.
        v_head = SUBSTRING(v_item FROM 1 FOR 30);
        v_retry = NULL;
        v_good = IIF(v_head SIMILAR TO '[0-9]{1,18},(|\-1|[0-9]{1,9}),%' ESCAPE '\', 1, 0);
        IF (v_good = 1) THEN
        BEGIN
            v_comma = POSITION(',', v_head, POSITION(',', v_head) + 1);
            v_said = SUBSTRING(v_head FROM POSITION(',', v_head) + 1 FOR v_comma - POSITION(',', v_head) - 1);
            IF (CHAR_LENGTH(v_said) > 0) THEN
                v_retry = v_said;
            IF (v_retry > 315360000) THEN
                v_good = 0;
        END
        IF (v_good = 0) THEN
        BEGIN
            v_head = SUBSTRING(v_item FROM 1 FOR c_error);
            IF (v_quoted = 1 OR LEFT(v_head, 1) BETWEEN '0' AND '9' AND v_head SIMILAR TO '[0-9]+,[\-0-9]*,%' ESCAPE '\') THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'failures: line ' || v_n || ': must be id,retry_after_seconds,'
                    || 'error where retry_after_seconds is empty, -1, or 0 to 315,360,000');
            -- Includes the line feeds of empty lines.
            error = error || RPAD('', MINVALUE(v_n - v_last, c_error - CHAR_LENGTH(error)), ASCII_CHAR(10));
            error = error || LEFT(v_head, c_error - CHAR_LENGTH(error));
        END
        ELSE
        BEGIN
            IF (v_last IS NOT NULL) THEN
                SUSPEND;
            id = LEFT(v_head, POSITION(',', v_head) - 1);
            retry = v_retry;
            v_error = SUBSTRING(v_item FROM v_comma + 1);
            v_quoted = IIF(LEFT(v_error, 1) = '"', 1, 0);
            IF (v_quoted = 1) THEN
            BEGIN
                v_said = 'failures: line ' || v_n || ': the error begins with a double quote and is not a JSON string';
                SELECT LIST(j.piece, '') FROM imq_json_text(:v_error, :v_said) AS j INTO v_error;
            END
            error = SUBSTRING(v_error FROM 1 FOR c_error);
        END
        v_last = v_n;
    END
    IF (v_last IS NOT NULL) THEN
        SUSPEND;
END

-- read_failures: the items of finish_batch's list of failures.
-- Arguments:   p_failures (one a line: id,retry_after_seconds,error)
-- Returns:     id, retry (NULL: the queue's backoff), error (cut at 4,000 characters)
-- Errors:      50002 invalid_argument, naming the line
-- Transaction: reads nothing
-- Example:     SELECT id, retry, error FROM mq_read_failures('17,30,busy');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_read_failures (
    p_failures mq_text
)
RETURNS (
    id bigint,
    retry integer,
    error mq_error
)
AS
DECLARE v_n integer;
DECLARE v_item mq_text;
DECLARE v_quoted smallint;
DECLARE v_head varchar(40) CHARACTER SET UTF8;
DECLARE v_comma integer;
DECLARE v_error mq_text;
DECLARE v_said varchar(200) CHARACTER SET UTF8;
BEGIN
    FOR SELECT n, item, quoted FROM mq_split_list('failures', :p_failures) INTO v_n, v_item, v_quoted DO
    BEGIN
        -- 18 digits, a comma, 9 digits and a comma are the longest that counts.
        v_head = SUBSTRING(v_item FROM 1 FOR 30);
        v_comma = POSITION(',', v_head);
        retry = NULL;
        IF (v_quoted = 0 AND v_head SIMILAR TO '[0-9]{1,18},(|\-1|[0-9]{1,9}),%' ESCAPE '\') THEN
        BEGIN
            id = LEFT(v_head, v_comma - 1);
            v_head = SUBSTRING(v_head FROM v_comma + 1);
            v_comma = v_comma + POSITION(',', v_head);
            IF (LEFT(v_head, 1) <> ',') THEN
                retry = LEFT(v_head, POSITION(',', v_head) - 1);
        END
        ELSE
            retry = -2;
        IF (retry NOT BETWEEN -1 AND 315360000) THEN
            EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'failures: line ' || v_n || ': must be id,retry_after_seconds,'
                || 'error where retry_after_seconds is empty, -1, or 0 to 315,360,000');
        v_error = SUBSTRING(v_item FROM v_comma + 1);
        IF (LEFT(v_error, 1) = '"') THEN
        BEGIN
            v_said = 'failures: line ' || v_n || ': the error begins with a double quote and is not a JSON string';
            SELECT LIST(j.piece, '') FROM mq_json_text(:v_error, :v_said) AS j INTO v_error;
        END
        error = SUBSTRING(v_error FROM 1 FOR 4000);
        SUSPEND;
    END
END^

SET TERM ; ^

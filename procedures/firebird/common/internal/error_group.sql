-- error_group: the common text of errors that differ only in numbers: up to 200 characters of the first line, with # for
--              each run of digits, without trailing blanks; '': no error.
CREATE OR ALTER FUNCTION imq_error_group (p_error mq_error)
RETURNS mq_name
AS
DECLARE v_line varchar(500) CHARACTER SET UTF8;
DECLARE v_digit integer = 0;
BEGIN
    v_line = LEFT(COALESCE(p_error, ''), 500);
    IF (POSITION(ASCII_CHAR(13), v_line) > 0) THEN
        v_line = LEFT(v_line, POSITION(ASCII_CHAR(13), v_line) - 1);
    IF (POSITION(ASCII_CHAR(10), v_line) > 0) THEN
        v_line = LEFT(v_line, POSITION(ASCII_CHAR(10), v_line) - 1);
    WHILE (v_digit < 10) DO
    BEGIN
        v_line = REPLACE(v_line, v_digit, '#');
        v_digit = v_digit + 1;
    END
    -- Each round halves the number.
    WHILE (POSITION('##', v_line) > 0) DO
        v_line = REPLACE(v_line, '##', '#');
    RETURN TRIM(TRAILING FROM LEFT(v_line, 200));
END

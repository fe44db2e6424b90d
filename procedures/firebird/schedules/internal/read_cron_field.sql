-- read_cron_field: the values that one field of a cron expression matches.
-- Arguments:   p_name (of the field, for error texts), p_field (its text), p_low and p_high (its limits), p_names (three
--              letters per value, from the first value on; NULL: the field has no names)
-- Returns:     places: a text of p_high + 1 digits; the n-th is 1 if the value n - 1 matches, else 0
CREATE OR ALTER FUNCTION imq_read_cron_field (
    p_name varchar(20) CHARACTER SET ASCII, p_field mq_name, p_low integer, p_high integer,
    p_names varchar(40) CHARACTER SET UTF8
)
RETURNS varchar(60) CHARACTER SET ASCII
AS
DECLARE c_item varchar(100) CHARACTER SET UTF8 = '(\*|[0-9]{1,2}|[A-Za-z]{3})(\-([0-9]{1,2}|[A-Za-z]{3}))?(/[0-9]{1,2})?';
DECLARE places varchar(60) CHARACTER SET ASCII;
DECLARE v_left varchar(201) CHARACTER SET UTF8;
DECLARE v_item mq_name; DECLARE v_range mq_name;
DECLARE v_dash integer; DECLARE v_first integer; DECLARE v_last integer; DECLARE v_step integer;
BEGIN
    places = RPAD('', p_high + 1, '0');
    v_left = p_field || ',';
    WHILE (CHAR_LENGTH(v_left) > 0) DO
    BEGIN
        v_item = LEFT(v_left, POSITION(',' IN v_left) - 1);
        v_left = SUBSTRING(v_left FROM CHAR_LENGTH(v_item) + 2);
        v_first = NULL;
        v_last = NULL;
        v_step = 1;
        IF (v_item SIMILAR TO c_item ESCAPE '\') THEN
        BEGIN
            v_range = UPPER(v_item);
            IF (POSITION('/' IN v_range) > 0) THEN
            BEGIN
                v_step = SUBSTRING(v_range FROM POSITION('/' IN v_range) + 1);
                v_range = LEFT(v_range, POSITION('/' IN v_range) - 1);
            END
            v_dash = POSITION('-' IN v_range);
            v_first = IIF(v_range = '*', p_low, imq_cron_value(IIF(v_dash = 0, v_range, LEFT(v_range, v_dash - 1)), p_low, p_names));
            v_last = CASE
                WHEN v_dash > 0 THEN imq_cron_value(SUBSTRING(v_range FROM v_dash + 1), p_low, p_names)
                WHEN v_range = '*' OR POSITION('/' IN v_item) > 0 THEN p_high
                ELSE v_first
            END;
            -- Sunday is also 7, so SUN can end a range.
            IF (p_high = 7 AND v_last = 0 AND v_first > 0) THEN
                v_last = 7;
            IF (v_range STARTING WITH '*-') THEN
                v_first = NULL;
        END
        IF ((v_first BETWEEN p_low AND v_last AND v_last <= p_high AND v_step > 0) IS NOT TRUE) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'cron: ' || p_name || ': ' || v_item || ' must be *, a value or a '
                || 'range of ' || p_low || ' to ' || p_high || ', with or without /step');
        WHILE (v_first <= v_last) DO
        BEGIN
            places = OVERLAY(places PLACING '1' FROM v_first + 1 FOR 1);
            v_first = v_first + v_step;
        END
    END
    RETURN places;
END

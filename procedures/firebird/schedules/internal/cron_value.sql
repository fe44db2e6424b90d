-- cron_value: the number of a value or name in a cron expression.
-- Arguments:   p_value (digits, or a name in capitals), p_low (the number of the first name), p_names (three letters per
--              name; NULL: the field has no names)
-- Returns:     the number; NULL when there is no such name
CREATE OR ALTER FUNCTION imq_cron_value (p_value mq_name, p_low integer, p_names varchar(40) CHARACTER SET UTF8)
RETURNS integer
AS
DECLARE v_place integer;
BEGIN
    IF (p_value SIMILAR TO '[0-9]+') THEN
        RETURN p_value;
    v_place = POSITION(p_value IN p_names) - 1;
    RETURN IIF(v_place >= 0 AND MOD(v_place, 3) = 0, p_low + v_place / 3, NULL);
END

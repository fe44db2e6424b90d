-- next_minute: the first minute of a day that a cron expression matches.
-- Arguments:   p_minutes and p_hours (of read_cron), p_from and p_until (minutes since midnight, inclusive)
-- Returns:     minutes since midnight; NULL: none
CREATE OR ALTER FUNCTION imq_next_minute (
    p_minutes varchar(60) CHARACTER SET ASCII, p_hours varchar(60) CHARACTER SET ASCII, p_from bigint, p_until bigint
)
RETURNS bigint
AS
DECLARE v_hour integer; DECLARE v_begin integer; DECLARE v_place integer;
BEGIN
    v_hour = p_from / 60;
    v_begin = MOD(p_from, 60);
    WHILE (v_hour <= MINVALUE(p_until, 1439) / 60) DO
    BEGIN
        v_place = IIF(SUBSTRING(p_hours FROM v_hour + 1 FOR 1) = '1', POSITION('1', p_minutes, v_begin + 1), 0);
        IF (v_place > 0 AND v_hour * 60 + v_place - 1 <= p_until) THEN
            RETURN v_hour * 60 + v_place - 1;
        v_begin = 0;
        v_hour = v_hour + 1;
    END
    RETURN NULL;
END

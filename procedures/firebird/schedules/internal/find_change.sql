-- find_change: when a time zone changes its UTC offset.
-- Arguments:   p_zone, p_from and p_until (minutes since 1970-01-01 00:00 UTC, at most three days apart)
-- Returns:     the first minute with the UTC offset of p_until; NULL: the offset does not change
CREATE OR ALTER FUNCTION imq_find_change (p_zone mq_name, p_from bigint, p_until bigint)
RETURNS bigint
AS
DECLARE v_minutes integer;
DECLARE v_before bigint; DECLARE v_change bigint; DECLARE v_middle bigint;
BEGIN
    v_minutes = imq_zone_minutes(p_zone, p_until);
    IF (imq_zone_minutes(p_zone, p_from) = v_minutes) THEN
        RETURN NULL;
    v_before = p_from;
    v_change = p_until;
    WHILE (v_change - v_before > 1) DO
    BEGIN
        v_middle = (v_before + v_change) / 2;
        IF (imq_zone_minutes(p_zone, v_middle) = v_minutes) THEN
            v_change = v_middle;
        ELSE
            v_before = v_middle;
    END
    RETURN v_change;
END

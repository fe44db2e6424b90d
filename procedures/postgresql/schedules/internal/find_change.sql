-- find_change: when a time zone changes its UTC offset.
-- Arguments: p_from and p_until (minutes since 1970-01-01 00:00 UTC, at most three days apart)
-- Returns: the first minute with the UTC offset of p_until; NULL: the offset does not change
CREATE OR REPLACE FUNCTION mq_internal.find_change(p_zone text, p_from bigint, p_until bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_minutes integer := mq_internal.zone_minutes(p_zone, p_until);
    v_before bigint := p_from;
    v_change bigint := p_until;
    v_middle bigint;
BEGIN
    IF mq_internal.zone_minutes(p_zone, p_from) = v_minutes THEN
        RETURN NULL;
    END IF;
    WHILE v_change - v_before > 1 LOOP
        v_middle := (v_before + v_change) / 2;
        IF mq_internal.zone_minutes(p_zone, v_middle) = v_minutes THEN
            v_change := v_middle;
        ELSE
            v_before := v_middle;
        END IF;
    END LOOP;
    RETURN v_change;
END
$$;

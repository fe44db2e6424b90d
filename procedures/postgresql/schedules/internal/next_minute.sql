-- next_minute: the first minute of a day that a cron expression matches.
-- Arguments: p_from and p_until (minutes since midnight, inclusive)
-- Returns: minutes since midnight; NULL: none
CREATE OR REPLACE FUNCTION mq_internal.next_minute(
    p_minutes text, p_hours text, p_from bigint, p_until bigint
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_begin integer := p_from % 60;
    v_place integer;
BEGIN
    FOR v_hour IN p_from / 60..least(p_until, 1439) / 60 LOOP
        v_place := CASE WHEN substr(p_hours, v_hour::integer + 1, 1) = '1' THEN strpos(substr(p_minutes, v_begin + 1), '1') ELSE 0 END;
        IF v_place > 0 AND v_hour * 60 + v_begin + v_place - 1 <= p_until THEN
            RETURN v_hour * 60 + v_begin + v_place - 1;
        END IF;
        v_begin := 0;
    END LOOP;
    RETURN NULL;
END
$$;

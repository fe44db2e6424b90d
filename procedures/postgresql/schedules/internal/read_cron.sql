-- read_cron: parse a cron expression.
-- Arguments: p_cron (five fields, a short form such as @daily, or @every and seconds)
-- Returns: every (seconds; NULL for five fields); minutes, hours, days, months and weekdays (see read_cron_field),
--     both_days (a date must match both days and weekdays, not only one of them), real_time (the hour is *: see
--     next_in_day)
CREATE OR REPLACE FUNCTION mq_internal.read_cron(
    p_cron text, OUT every bigint, OUT minutes text, OUT hours text, OUT days text, OUT months text, OUT weekdays text,
    OUT both_days boolean, OUT real_time boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    v_fields text[];
BEGIN
    PERFORM mq_internal.require_name('cron', p_cron, false);
    v_fields := regexp_split_to_array(btrim(p_cron, E' \t'), E'[ \t]+');
    IF lower(v_fields[1]) = '@every' AND cardinality(v_fields) = 2 AND v_fields[2] ~ '^[0-9]{1,9}$'
        AND v_fields[2]::integer BETWEEN 1 AND 315360000
    THEN
        every := v_fields[2];
        RETURN;
    END IF;
    IF cardinality(v_fields) = 1 THEN
        v_fields := string_to_array(CASE lower(v_fields[1])
            WHEN '@hourly' THEN '0 * * * *'
            WHEN '@daily' THEN '0 0 * * *'
            WHEN '@midnight' THEN '0 0 * * *'
            WHEN '@weekly' THEN '0 0 * * 0'
            WHEN '@monthly' THEN '0 0 1 * *'
            WHEN '@yearly' THEN '0 0 1 1 *'
            WHEN '@annually' THEN '0 0 1 1 *'
        END, ' ');
    END IF;
    IF cardinality(v_fields) IS DISTINCT FROM 5 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'cron: must be five fields (minute, hour, day of month, month, day of week), '
            || '@hourly, @daily, @weekly, @monthly or @yearly, or @every and 1 to 315,360,000 seconds');
    END IF;
    minutes := mq_internal.read_cron_field('minute', v_fields[1], 0, 59, NULL);
    hours := mq_internal.read_cron_field('hour', v_fields[2], 0, 23, NULL);
    days := mq_internal.read_cron_field('day of month', v_fields[3], 1, 31, NULL);
    months := mq_internal.read_cron_field('month', v_fields[4], 1, 12, 'JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC');
    weekdays := mq_internal.read_cron_field('day of week', v_fields[5], 0, 7, 'SUNMONTUEWEDTHUFRISAT');
    IF right(weekdays, 1) = '1' THEN
        weekdays := overlay(weekdays PLACING '1' FROM 1 FOR 1);
    END IF;
    both_days := starts_with(v_fields[3], '*') OR starts_with(v_fields[5], '*');
    real_time := starts_with(v_fields[2], '*');
END
$$;

-- next_day: the first date from p_day on that a cron expression matches.
-- Arguments: p_day (days since 1970-01-01)
-- Returns: days since 1970-01-01; NULL when no date in the next 50 years matches
CREATE OR REPLACE FUNCTION mq_internal.next_day(p_cron record, p_day integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_date date := date '1970-01-01' + p_day;
    v_end date := v_date + interval '50 years';
    v_day boolean;
    v_weekday boolean;
BEGIN
    WHILE v_date < v_end LOOP
        IF substr(p_cron.months, extract(month FROM v_date)::integer + 1, 1) = '0' THEN
            v_date := date_trunc('month', v_date) + interval '1 month';
        ELSE
            v_day := substr(p_cron.days, extract(day FROM v_date)::integer + 1, 1) = '1';
            v_weekday := substr(p_cron.weekdays, extract(dow FROM v_date)::integer + 1, 1) = '1';
            IF v_day AND v_weekday OR (v_day OR v_weekday) AND NOT p_cron.both_days THEN
                RETURN v_date - date '1970-01-01';
            END IF;
            v_date := v_date + 1;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

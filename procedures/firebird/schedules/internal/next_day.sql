-- next_day: the first date from p_day on that a cron expression matches.
-- Arguments:   p_days, p_months, p_weekdays and p_both_days (of read_cron), p_day (days since 1970-01-01)
-- Returns:     days since 1970-01-01; NULL when no date in the next 50 years matches
CREATE OR ALTER FUNCTION imq_next_day (
    p_days varchar(60) CHARACTER SET ASCII, p_months varchar(60) CHARACTER SET ASCII,
    p_weekdays varchar(60) CHARACTER SET ASCII, p_both_days smallint, p_day integer
)
RETURNS integer
AS
DECLARE v_date date; DECLARE v_end date;
DECLARE v_matches integer;
BEGIN
    v_date = DATEADD(p_day DAY TO date '1970-01-01');
    v_end = DATEADD(50 YEAR TO v_date);
    WHILE (v_date < v_end) DO
    BEGIN
        IF (SUBSTRING(p_months FROM EXTRACT(MONTH FROM v_date) + 1 FOR 1) = '0') THEN
            v_date = DATEADD(1 MONTH TO DATEADD(1 - EXTRACT(DAY FROM v_date) DAY TO v_date));
        ELSE
        BEGIN
            v_matches = IIF(SUBSTRING(p_days FROM EXTRACT(DAY FROM v_date) + 1 FOR 1) = '1', 1, 0)
                + IIF(SUBSTRING(p_weekdays FROM EXTRACT(WEEKDAY FROM v_date) + 1 FOR 1) = '1', 1, 0);
            IF (v_matches > p_both_days) THEN
                RETURN DATEDIFF(DAY FROM date '1970-01-01' TO v_date);
            v_date = DATEADD(1 DAY TO v_date);
        END
    END
    RETURN NULL;
END

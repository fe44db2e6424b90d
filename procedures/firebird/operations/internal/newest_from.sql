-- newest_from: the time since which a type has enough dead or archived messages, but not many more.
-- Arguments:   p_table (dead or archive), p_type, p_size (the number that is enough)
-- Returns:     the time; the first one when there are fewer messages; NULL when there are none
--
-- Firebird reads an index in one direction only, and the indexes of dead and archived messages begin with the oldest. So
-- a binary search finds the time.
CREATE OR ALTER FUNCTION imq_newest_from (p_table varchar(7) CHARACTER SET ASCII, p_type mq_name, p_size integer)
RETURNS timestamp
AS
DECLARE v_from timestamp; DECLARE v_to timestamp; DECLARE v_middle timestamp;
DECLARE v_rows integer;
BEGIN
    IF (p_table = 'dead') THEN
        SELECT e.died_at FROM mq_dead AS e WHERE e.type = :p_type
        PLAN (e ORDER mq_dead_age) ORDER BY e.type, e.died_at, e.id ROWS 1
        INTO v_from;
    ELSE
        SELECT a.completed_at FROM mq_archive AS a WHERE a.type = :p_type
        PLAN (a ORDER mq_archive_type) ORDER BY a.type, a.completed_at, a.id ROWS 1
        INTO v_from;
    v_to = DATEADD(1 DAY TO mq_utc_now());
    WHILE (DATEDIFF(MILLISECOND FROM v_from TO v_to) > 1) DO
    BEGIN
        v_middle = DATEADD(CAST(DATEDIFF(MILLISECOND FROM v_from TO v_to) / 2 AS bigint) MILLISECOND TO v_from);
        IF (p_table = 'dead') THEN
            SELECT COUNT(*)
            FROM (
                SELECT e.id FROM mq_dead AS e WHERE e.type = :p_type AND e.died_at >= :v_middle
                PLAN (e ORDER mq_dead_age) ORDER BY e.type, e.died_at, e.id ROWS 2 * :p_size + 100
            ) AS d
            INTO v_rows;
        ELSE
            SELECT COUNT(*)
            FROM (
                SELECT a.id FROM mq_archive AS a WHERE a.type = :p_type AND a.completed_at >= :v_middle
                PLAN (a ORDER mq_archive_type) ORDER BY a.type, a.completed_at, a.id ROWS 2 * :p_size + 100
            ) AS d
            INTO v_rows;
        IF (v_rows < p_size) THEN
            v_to = v_middle;
        ELSE
            v_from = v_middle;
        -- Few enough rows to sort.
        IF (v_rows BETWEEN p_size AND 2 * p_size + 99) THEN
            LEAVE;
    END
    RETURN v_from;
END

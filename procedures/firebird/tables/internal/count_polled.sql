-- count_polled: count the rows of a polling table that are in one state, up to 10,000.
-- Arguments:   p_name, p_state (A claimed, N waiting or E dead)
-- Returns:     the count
CREATE OR ALTER FUNCTION imq_count_polled (p_name mq_name, p_state varchar(1) CHARACTER SET ASCII)
RETURNS bigint
AS
DECLARE v_rows bigint;
BEGIN
    SELECT COUNT(*)
    FROM (
        SELECT p.id FROM mq_polled_row AS p WHERE p.name = :p_name AND p.state = :p_state
        PLAN (p ORDER mq_polled_row_due) ORDER BY p.name, p.state, p.run_at, p.id ROWS 10000
    ) AS r
    INTO v_rows;
    RETURN v_rows;
END

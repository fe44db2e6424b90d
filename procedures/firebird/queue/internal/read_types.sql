-- read_types: the types of a list, each once, in the order of the list; refuses a list that does not have 1 to 1,000.
CREATE OR ALTER PROCEDURE imq_read_types (p_types mq_text)
RETURNS (type mq_name)
AS
DECLARE v_first integer;
DECLARE v_count integer = 0;
BEGIN
    FOR SELECT t.type, MIN(t.n), COUNT(*) OVER () FROM imq_split_types(:p_types) AS t GROUP BY t.type ORDER BY 2
        INTO type, v_first, v_count
    DO
    BEGIN
        IF (v_count > 1000) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'types: must be 1 to 1,000 types, not ' || v_count);
        SUSPEND;
    END
    IF (v_count = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'types: must be 1 to 1,000 types, not 0');
END

-- split_types: the types of a list, one per line, checked; one that occurs twice has two rows.
CREATE OR ALTER PROCEDURE imq_split_types (p_types mq_text)
RETURNS (n integer, type mq_name)
AS
DECLARE v_item mq_text;
BEGIN
    FOR SELECT s.n, s.item FROM imq_split_list('types', :p_types) AS s INTO n, v_item DO
    BEGIN
        EXECUTE PROCEDURE imq_require_name('types: line ' || n, LEFT(v_item, 1000), 0);
        type = v_item;
        SUSPEND;
    END
END

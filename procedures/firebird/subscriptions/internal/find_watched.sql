-- find_watched: find the watched table that an argument names.
-- Arguments:   p_table (as SQL names it; a dropped table: as messages name it)
-- Returns:     id, label, quoted (the table, or a view in its place, for SQL; NULL: it was dropped)
CREATE OR ALTER PROCEDURE imq_find_watched (p_table mq_text)
RETURNS (id integer, label mq_name, quoted varchar(130) CHARACTER SET UTF8)
AS
DECLARE v_refused smallint = 0;
BEGIN
    BEGIN
        SELECT t.label FROM imq_find_table('table', :p_table) AS t INTO label;
        WHEN EXCEPTION mq_50005, EXCEPTION mq_50006 DO
            label = NULL;
        WHEN EXCEPTION mq_50002 DO
            v_refused = 1;
    END
    IF (label IS NULL AND CHAR_LENGTH(p_table) <= 200) THEN
        label = p_table;
    SELECT w.id FROM mq_watched AS w WHERE w.label = :label INTO id;
    IF (id IS NULL) THEN
        SELECT w.id, w.label FROM mq_watched AS w WHERE w.label = UPPER(:label) INTO id, label;
    IF (id IS NULL AND v_refused = 1) THEN
        SELECT t.label FROM imq_find_table('table', :p_table) AS t INTO label;
    IF (id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('not_found', 'table: ' || COALESCE(label, p_table)
            || ' is not watched: call watch_table first');
    -- A label is the name of the table, even if the argument is written in another way.
    SELECT '"' || REPLACE(TRIM(r.rdb$relation_name), '"', '""') || '"' FROM rdb$relations AS r
    WHERE r.rdb$relation_name = :label
    INTO quoted;
    SUSPEND;
END

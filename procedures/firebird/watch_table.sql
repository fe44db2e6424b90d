-- watch_table: let a table tell its subscriptions of its changes; once more: put its trigger right.
-- Arguments:   p_table (as SQL names it; it needs a primary key)
-- Returns:     no row: the trigger is made by this call
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table; the engine's own (no permission) where the caller
--              may not alter the table
-- Transaction: joins the caller's; what is prepared after its commit fires the trigger: a session goes on without it with what it
--              has prepared, or has called, before
-- Example:     SELECT * FROM mq_watch_table('stock');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_watch_table (
    p_table mq_text
)
RETURNS (
    statement mq_text
)
AS
DECLARE v_table varchar(63) CHARACTER SET UTF8;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_label mq_name;
DECLARE v_columns mq_text;
DECLARE v_id integer;
DECLARE v_new mq_text;
DECLARE v_old mq_text;
DECLARE v_trigger varchar(31) CHARACTER SET UTF8;
DECLARE v_owner varchar(63) CHARACTER SET UTF8;
DECLARE v_right varchar(200) CHARACTER SET UTF8;
BEGIN
    SELECT t.name, t.quoted, t.label FROM mq_find_table('table', :p_table) AS t INTO v_table, v_quoted, v_label;
    SELECT LIST('"' || REPLACE(k.name, '"', '""') || '"')
    FROM (
        SELECT TRIM(s.rdb$field_name) AS name
        FROM rdb$relation_constraints AS c
        JOIN rdb$index_segments AS s ON s.rdb$index_name = c.rdb$index_name
        WHERE c.rdb$relation_name = :v_table AND c.rdb$constraint_type = 'PRIMARY KEY'
        ORDER BY s.rdb$field_position
    ) AS k
    INTO v_columns;
    IF (v_columns IS NULL) THEN
        EXECUTE PROCEDURE mq_raise_error('unsuitable_table',
            v_label || ' has no primary key, which messages name its rows by');
    v_new = mq_row_json(v_table, v_columns, 'NEW');
    v_old = mq_row_json(v_table, v_columns, 'OLD');

    SELECT w.id FROM mq_watched AS w WHERE w.label = :v_label INTO v_id;
    IF (v_id IS NULL) THEN
    BEGIN
        v_id = NEXT VALUE FOR mq_watched_id;
        INSERT INTO mq_watched (id, label, head)
        VALUES (:v_id, :v_label, '{"table":' || CAST(mq_escape_json(x'FE' || CAST(:v_label AS varchar(252) CHARACTER SET OCTETS)
            || x'FE') AS varchar(500) CHARACTER SET OCTETS) || ',"action":"');
    END
    v_trigger = 'MQ_WATCH_' || v_id;
    -- For each action a look first, so that writers of what nobody has subscribed to pay for no more than that.
    EXECUTE STATEMENT 'CREATE OR ALTER TRIGGER ' || v_trigger || ' FOR ' || v_quoted || '
ACTIVE AFTER INSERT OR UPDATE OR DELETE POSITION 0
AS
BEGIN
    IF (INSERTING) THEN
    BEGIN
        IF (EXISTS (SELECT 1 FROM mq_subscription AS s WHERE s.watched = ' || v_id || ' AND s.action = ''I'')) THEN
            EXECUTE PROCEDURE mq_tell_changes(' || v_id || ', ''I'', ' || v_new || ', NULL);
    END
    ELSE IF (UPDATING) THEN
    BEGIN
        IF (EXISTS (SELECT 1 FROM mq_subscription AS s WHERE s.watched = ' || v_id || ' AND s.action = ''U'')) THEN
            EXECUTE PROCEDURE mq_tell_changes(' || v_id || ', ''U'', ' || v_new || ', ' || v_old || ');
    END
    ELSE IF (EXISTS (SELECT 1 FROM mq_subscription AS s WHERE s.watched = ' || v_id || ' AND s.action = ''D'')) THEN
        EXECUTE PROCEDURE mq_tell_changes(' || v_id || ', ''D'', ' || v_old || ', NULL);
END';
    -- The rights are the trigger's own: writers need none.
    SELECT rdb$owner_name FROM rdb$relations WHERE rdb$relation_name = 'MQ_MESSAGE' INTO v_owner;
    FOR
        SELECT 'SELECT ON mq_subscription' FROM rdb$database
        UNION ALL
        SELECT 'EXECUTE ON PROCEDURE mq_tell_changes' FROM rdb$database
        UNION ALL
        SELECT 'EXECUTE ON FUNCTION ' || TRIM(f.rdb$function_name) FROM rdb$functions AS f
        WHERE f.rdb$function_name STARTING WITH 'MQ_' AND f.rdb$owner_name = :v_owner AND f.rdb$package_name IS NULL
            AND POSITION(LOWER(TRIM(f.rdb$function_name)) || '(' IN :v_new) > 0
        INTO v_right
    DO
    BEGIN
        EXECUTE STATEMENT 'GRANT ' || v_right || ' TO TRIGGER ' || v_trigger;
        WHEN ANY DO
            EXECUTE PROCEDURE mq_raise_error('unsuitable_table', v_label || ': ' || TRIM(CURRENT_USER)
                || ' may not give the trigger its rights: call it as ' || TRIM(v_owner) || ', or let ' || TRIM(v_owner)
                || ' GRANT ' || v_right || ' TO USER ' || TRIM(CURRENT_USER) || ' WITH GRANT OPTION');
    END
    IF (statement IS NOT NULL) THEN
        SUSPEND;
END^

SET TERM ; ^

-- watch_table: create the trigger that sends messages when a table changes; another call repairs it.
-- Arguments:   p_table (as SQL names it; it needs a primary key)
-- Returns:     statement: no rows, because this call creates the trigger
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table; on 3.0 in a snapshot 50001 wrong_isolation;
--              the engine's own (no permission) when the caller may not alter the table
-- Transaction: joins the caller's; statements prepared after its commit fire the trigger. A session that has prepared a
--              statement, or called a procedure, before that continues without the trigger
-- Example:     SELECT * FROM mq_watch_table('stock');
--
-- On 3.0 the trigger gets its rights in a separate transaction, while it is empty and inactive. If the trigger and its
-- rights were committed together, writers could be refused until they reconnect: no permission for SELECT access to TABLE
-- MQ_SUBSCRIPTION.

CREATE OR ALTER PROCEDURE mq_watch_table (
    p_table mq_text
)
RETURNS (statement mq_text)
AS
DECLARE v_table varchar(63) CHARACTER SET UTF8;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_label mq_name;
DECLARE v_columns mq_text; DECLARE v_new mq_text; DECLARE v_old mq_text; DECLARE v_source mq_text;
DECLARE v_id integer;
DECLARE v_trigger varchar(31) CHARACTER SET UTF8;
BEGIN
    SELECT t.name, t.quoted, t.label FROM imq_find_table('table', :p_table) AS t INTO v_table, v_quoted, v_label;
    -- As on the engines with schemas, where a dot could end the schema's name.
    IF (POSITION('.' IN v_label) > 0) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table',
            v_label || ' has a dot in its name: messages could not distinguish it from a table of another schema');
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
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table',
            v_label || ' has no primary key: messages identify rows by it');
    v_new = imq_row_json(v_table, v_columns, 'NEW');
    v_old = imq_row_json(v_table, v_columns, 'OLD');

    SELECT w.id FROM mq_watched AS w WHERE w.label = :v_label INTO v_id;
    IF (v_id IS NULL) THEN
    BEGIN
        -- Reuse the number of a trigger that unwatch_table has left.
        SELECT FIRST 1 SUBSTRING(TRIM(t.rdb$trigger_name) FROM 10)
        FROM rdb$triggers AS t
        WHERE t.rdb$relation_name = :v_table AND TRIM(t.rdb$trigger_name) SIMILAR TO 'MQ#_WATCH#_[0-9]+' ESCAPE '#'
            AND EXISTS (
                SELECT 1 FROM rdb$user_privileges AS p
                WHERE p.rdb$user = t.rdb$trigger_name AND p.rdb$user_type = 2 AND p.rdb$relation_name = 'MQ_SEND_CHANGES'
            )
        INTO v_id;
        WHILE (v_id IS NULL) DO
        BEGIN
            v_id = NEXT VALUE FOR mq_watched_id;
            v_trigger = 'MQ_WATCH_' || v_id;
            IF (EXISTS (SELECT 1 FROM rdb$triggers WHERE rdb$trigger_name = :v_trigger)) THEN
                v_id = NULL;
        END
        INSERT INTO mq_watched (id, label, head)
        VALUES (:v_id, :v_label, '{"table":' || CAST(imq_escape_json(x'FE' || CAST(:v_label AS varchar(252) CHARACTER SET OCTETS)
            || x'FE') AS varchar(500) CHARACTER SET OCTETS) || ',"action":"');
    END

    v_trigger = 'MQ_WATCH_' || v_id;
    -- From 4.0 on a separate transaction is not needed, and this call could not see its changes.
    IF (RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION') STARTING WITH '3.') THEN
    BEGIN
        IN AUTONOMOUS TRANSACTION DO
            EXECUTE PROCEDURE imq_make_trigger(v_trigger, v_quoted, v_label, v_new);
        -- A SNAPSHOT transaction does not see the new trigger.
        IF (NOT EXISTS (SELECT 1 FROM rdb$triggers AS t WHERE t.rdb$trigger_name = :v_trigger)) THEN
            EXECUTE PROCEDURE imq_require_read_committed;
    END
    ELSE
        EXECUTE PROCEDURE imq_make_trigger(v_trigger, v_quoted, v_label, v_new);
    -- Check for subscriptions first: without any, a write costs only this check.
    v_source = q'[AS
BEGIN
    IF (INSERTING) THEN
    BEGIN
        IF (EXISTS (SELECT 1 FROM mq_subscription AS s WHERE s.watched = {"id"} AND s.action = 'I')) THEN
            EXECUTE PROCEDURE imq_send_changes({"id"}, 'I', {"new"}, NULL);
    END
    ELSE IF (UPDATING) THEN
    BEGIN
        IF (EXISTS (SELECT 1 FROM mq_subscription AS s WHERE s.watched = {"id"} AND s.action = 'U')) THEN
            EXECUTE PROCEDURE imq_send_changes({"id"}, 'U', {"new"}, {"old"});
    END
    ELSE IF (EXISTS (SELECT 1 FROM mq_subscription AS s WHERE s.watched = {"id"} AND s.action = 'D')) THEN
        EXECUTE PROCEDURE imq_send_changes({"id"}, 'D', {"old"}, NULL);
END]';
    v_source = REPLACE(REPLACE(REPLACE(v_source, '{"id"}', v_id), '{"new"}', v_new), '{"old"}', v_old);
    -- 114: AFTER INSERT OR UPDATE OR DELETE.
    IF (NOT EXISTS (
        SELECT 1 FROM rdb$triggers AS t
        WHERE t.rdb$trigger_name = :v_trigger AND t.rdb$relation_name = :v_table AND t.rdb$trigger_type = 114
            AND t.rdb$trigger_inactive = 0 AND t.rdb$trigger_sequence = 0 AND t.rdb$trigger_source = :v_source
    )) THEN
        EXECUTE STATEMENT 'CREATE OR ALTER TRIGGER ' || v_trigger || ' FOR ' || v_quoted || '
ACTIVE AFTER INSERT OR UPDATE OR DELETE POSITION 0
' || v_source;
    IF (statement IS NOT NULL) THEN
        SUSPEND;
END

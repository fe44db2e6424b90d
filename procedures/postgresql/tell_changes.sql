-- tell_changes: what the triggers of a watched table do: send a message for each changed row and subscription.
-- Arguments:   none; the trigger's own argument is the table's name as messages tell it
-- Returns:     nothing: it runs after the statement
-- Errors:      none
-- Transaction: the writer's
-- Example:     CREATE TRIGGER mq_insert AFTER INSERT ON stock REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
--              EXECUTE FUNCTION mq.tell_changes('stock');
--
-- An update that changes the key shows as one old and one new row with nothing in common. The server adds both to their
-- transition tables at the same moment, so the n-th of one belongs to the n-th of the other: see tests/servers and
-- docs/decisions/0012_subscriptions.md. Only where a trigger of the table itself has swallowed a row on its way into another
-- partition are there fewer new ones than old ones, and no old key is told.

CREATE OR REPLACE FUNCTION mq.tell_changes() RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_action text := left(TG_OP, 1);
    v_types text[];
    v_ordered text[];
    v_notify text[];
    v_key text;
    v_rows text;
    v_count bigint;
    v_type text;
BEGIN
    PERFORM FROM mq.subscription WHERE label = TG_ARGV[0] AND action = v_action;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(s.type ORDER BY s.type), array_agg(s.type) FILTER (WHERE q.ordered),
        array_agg(s.type) FILTER (WHERE coalesce(q.notify, true))
    INTO v_types, v_ordered, v_notify
    FROM mq.subscription AS s
    LEFT JOIN mq.queue AS q ON q.type = s.type
    WHERE s.label = TG_ARGV[0] AND s.action = v_action;
    v_key := mq.key_json(TG_ARGV[0], TG_RELID);
    v_rows := format(CASE TG_OP
        WHEN 'INSERT' THEN 'SELECT row_number() OVER () AS n, %1$s AS key, NULL AS old_key FROM new_rows AS r'
        WHEN 'DELETE' THEN 'SELECT row_number() OVER () AS n, %1$s AS key, NULL AS old_key FROM old_rows AS r'
        ELSE 'SELECT a.n, a.key, nullif(b.key, a.key) AS old_key'
            ' FROM (SELECT row_number() OVER () AS n, %1$s AS key FROM new_rows AS r) AS a'
            ' LEFT JOIN (SELECT row_number() OVER () AS n, %1$s AS key FROM old_rows AS r) AS b'
            ' ON b.n = a.n AND (SELECT count(*) FROM old_rows) = (SELECT count(*) FROM new_rows)'
    END, v_key);
    EXECUTE 'WITH sent AS ('
        ' INSERT INTO mq.message (run_at, created_at, priority, type, body, source)'
        ' SELECT $1, $1, 0, t.type, concat($2, c.key, '',"old_key":'' || c.old_key, ''}''), $3'
        ' FROM (' || v_rows || ') AS c CROSS JOIN unnest($4) AS t (type)'
        ' ORDER BY c.n, t.type COLLATE "C"'
        ' RETURNING id, type'
        '), grouped AS ('
        ' INSERT INTO mq.grouped (id, attempts, type, group_key)'
        ' SELECT id, 0, type, '''' FROM sent WHERE type = ANY ($5)'
        ')'
        ' INSERT INTO mq.ready (run_at, id, priority, attempts, type)'
        ' SELECT $1, id, 0, 0, type FROM sent'
    USING v_now, format('{"table":%s,"action":"%s","key":', to_json(TG_ARGV[0]), v_action), mq.reader_name(NULL), v_types,
        v_ordered;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count > 0 AND v_notify IS NOT NULL THEN
        FOREACH v_type IN ARRAY v_notify LOOP
            PERFORM mq.wake(v_type);
        END LOOP;
    END IF;
    RETURN NULL;
END
$$;

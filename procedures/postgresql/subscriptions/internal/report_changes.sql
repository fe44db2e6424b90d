-- report_changes: the triggers of a watched table: send a message for each changed row and subscription.
-- Arguments:   none; the trigger's own argument is the table's name as messages name it
-- Returns:     nothing: it runs after the statement
-- Errors:      none
-- Transaction: the writer's
-- Example:     CREATE TRIGGER mq_insert AFTER INSERT ON stock REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
--              EXECUTE FUNCTION mq.report_changes('stock');
--
-- An update that changes the key shows as one old and one new row with nothing in common. The server adds both to their
-- transition tables at the same moment, so the n-th of one belongs to the n-th of the other: see tests/engines and
-- docs/decisions/0012_subscriptions.md. Only where a trigger of the table itself has swallowed a row on its way into another
-- partition are there fewer new rows than old ones, and then no old key is sent.

CREATE OR REPLACE FUNCTION mq.report_changes() RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
DECLARE
    -- Rows of one call of send_changes: long keys of all rows might not fit into an array.
    c_part CONSTANT integer := 10000;
    c_end CONSTANT text := ' OFFSET $1 LIMIT $2) AS r';
    v_action text := left(TG_OP, 1);
    v_key text;
    v_query text;
    v_zone text;
    v_digits text;
    v_style text;
    v_keys text[];
    v_old_keys text[];
    v_paired boolean;
    v_sent bigint := 0;
BEGIN
    PERFORM FROM mq.subscription WHERE label = TG_ARGV[0] AND action = v_action;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_key := mq.key_json(TG_ARGV[0], TG_RELID);
    IF strpos(v_key, 'json(') > 0 THEN
        -- Its texts follow the session's settings, see row_json. Not with SET above: that would cost every statement.
        v_zone := current_setting('timezone');
        v_digits := current_setting('extra_float_digits');
        v_style := current_setting('intervalstyle');
        PERFORM set_config('timezone', 'UTC', true), set_config('extra_float_digits', '1', true),
            set_config('intervalstyle', 'postgres', true);
    END IF;
    -- Planned each time, which is much of what a change of one row costs: two plain queries take less than one with a join.
    v_query := concat('SELECT array_agg(', v_key, ') FROM (SELECT * FROM ');
    LOOP
        EXECUTE v_query || CASE TG_OP WHEN 'DELETE' THEN 'old_rows' ELSE 'new_rows' END || c_end INTO v_keys USING v_sent, c_part;
        EXIT WHEN v_keys IS NULL;
        IF TG_OP = 'UPDATE' THEN
            EXECUTE v_query || 'old_rows' || c_end INTO v_old_keys USING v_sent, c_part;
            -- Counted only where there are more rows than these.
            IF v_sent = 0 AND cardinality(v_keys) = c_part THEN
                SELECT (SELECT count(*) FROM old_rows) = (SELECT count(*) FROM new_rows) INTO v_paired;
            ELSIF v_sent = 0 THEN
                v_paired := cardinality(v_keys) = cardinality(v_old_keys);
            END IF;
        END IF;
        PERFORM mq.send_changes(TG_ARGV[0], v_action, v_keys, CASE WHEN v_paired THEN v_old_keys END);
        EXIT WHEN cardinality(v_keys) < c_part;
        v_sent := v_sent + c_part;
    END LOOP;
    IF v_zone IS NOT NULL THEN
        PERFORM set_config('timezone', v_zone, true), set_config('extra_float_digits', v_digits, true),
            set_config('intervalstyle', v_style, true);
    END IF;
    RETURN NULL;
END
$$;

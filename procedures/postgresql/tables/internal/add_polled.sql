-- add_polled: store a polling table, for a caller with the rights that its claims need.
CREATE OR REPLACE FUNCTION mq_internal.add_polled(p_new mq.polled, p_pass text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_label text := CASE WHEN p_new.table_schema <> 'public' THEN quote_ident(p_new.table_schema) || '.' ELSE '' END
        || quote_ident(p_new.table_name);
    v_other text;
    v_old mq.polled;
BEGIN
    p_new.table_id := mq_internal.relation_of(p_new.table_schema, p_new.table_name);
    p_new.queue_id := 'mq.polled'::regclass;
    p_new.place := NULL;
    p_new.place_hash := NULL;
    p_new.copies := NULL;
    p_new.scanned_at := NULL;
    PERFORM mq_internal.require_pass(p_pass, p_new.table_id, mq_internal.polled_need(p_new), coalesce(p_new.status_column, ''));
    SELECT p.name INTO v_other
    FROM mq.polled AS p
    WHERE p.table_schema = p_new.table_schema AND p.table_name = p_new.table_name AND p.name <> p_new.name
        AND (p.status_column IS NOT NULL OR p.on_complete = 'delete')
        AND (p_new.status_column IS NOT NULL OR p_new.on_complete = 'delete')
        AND p.status_column IS NOT DISTINCT FROM p_new.status_column AND p.ready_value IS NOT DISTINCT FROM p_new.ready_value;
    IF v_other IS NOT NULL THEN
        PERFORM mq_internal.raise_error('already_exists', format('%s is adopted as %s already: its rows would be claimed twice', v_label,
            v_other));
    END IF;
    INSERT INTO mq.polled SELECT p_new.* ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN 1;
    END IF;
    SELECT * INTO v_old FROM mq.polled WHERE name = p_new.name;
    v_old.place := NULL;
    v_old.place_hash := NULL;
    v_old.copies := NULL;
    v_old.scanned_at := NULL;
    v_old.queue_id := p_new.queue_id;
    IF v_old IS DISTINCT FROM p_new THEN
        PERFORM mq_internal.raise_error('already_exists', format('name: %s is adopted with other settings: unadopt_table first', p_new.name));
    END IF;
    RETURN 0;
END
$$;

-- require_status: refuse status values that the column cannot hold or distinguish.
-- Arguments: p_delete (true: delete done rows)
CREATE OR REPLACE FUNCTION mq_internal.require_status(
    p_table oid, p_column text, p_ready text, p_active text, p_done text, p_error text, p_delete boolean
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    c_names constant text[] := ARRAY['ready_value', 'active_value', 'done_value', 'error_value'];
    v_values text[] := ARRAY[p_ready, p_active, p_done, p_error];
    v_type text;
    v_equal text;
    v_full text;
    v_not_null boolean;
    v_number smallint;
    v_check text;
    v_fits boolean;
    v_same boolean;
BEGIN
    SELECT format_type(a.atttypid, -1), format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attnum, mq_internal.operator_of(a.atttypid, 3)
    INTO v_type, v_full, v_not_null, v_number, v_equal
    FROM pg_attribute AS a WHERE a.attrelid = p_table AND a.attname = p_column;
    IF p_error IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'error_value: must not be NULL with a status_column');
    ELSIF p_done IS NULL AND NOT p_delete THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'done_value: must not be NULL with a status_column and keep');
    ELSIF p_ready IS NULL AND v_not_null THEN
        PERFORM mq_internal.raise_error('invalid_argument', format('ready_value: must not be NULL, because %s is NOT NULL', p_column));
    END IF;
    FOR i IN 1 .. 4 LOOP
        CONTINUE WHEN v_values[i] IS NULL;
        BEGIN
            -- A cast to varchar(1) cuts a longer text, which an UPDATE would refuse: so compare both.
            EXECUTE format('SELECT $1::%s %s $1::%s', v_type, v_equal, v_full) INTO v_fits USING v_values[i];
        EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
            v_fits := false;
        END;
        FOR v_check IN
            SELECT pg_get_expr(c.conbin, c.conrelid) FROM pg_constraint AS c
            WHERE c.conrelid = p_table AND c.contype = 'c' AND c.conkey = ARRAY[v_number]
        LOOP
            EXIT WHEN NOT v_fits;
            EXECUTE format('SELECT coalesce((SELECT %s FROM (SELECT $1::%s AS %I) AS t), true)', v_check, v_full, p_column)
            INTO v_fits USING v_values[i];
        END LOOP;
        IF NOT v_fits THEN
            PERFORM mq_internal.raise_error('invalid_argument', format('%s: %s cannot hold "%s"', c_names[i], p_column, left(v_values[i],
                50)));
        END IF;
        FOR j IN 1 .. i - 1 LOOP
            CONTINUE WHEN v_values[j] IS NULL;
            EXECUTE format('SELECT $1::%1$s %2$s $2::%1$s', v_type, v_equal) INTO v_same USING v_values[i], v_values[j];
            IF v_same THEN
                PERFORM mq_internal.raise_error('invalid_argument', format('%s: must differ from %s', c_names[i], c_names[j]));
            END IF;
        END LOOP;
    END LOOP;
END
$$;

-- column_without_equality: find a column of a table whose values cannot be compared reliably.
CREATE OR REPLACE FUNCTION mq_internal.column_without_equality(p_table oid, p_status text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_column record;
BEGIN
    FOR v_column IN
        SELECT a.attname, format_type(a.atttypid, -1) AS type, mq_internal.operator_of(a.atttypid, 3) AS equal
        FROM pg_attribute AS a
        WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped AND a.attname IS DISTINCT FROM p_status
        ORDER BY a.attnum
    LOOP
        IF v_column.type IN ('real', 'double precision', 'json', 'xml') OR v_column.equal IS NULL THEN
            RETURN v_column.attname;
        END IF;
        BEGIN
            EXECUTE format('SELECT NULL::%1$s %2$s NULL::%1$s', v_column.type, v_column.equal);
        EXCEPTION WHEN undefined_function THEN
            RETURN v_column.attname;
        END;
    END LOOP;
    RETURN NULL;
END
$$;

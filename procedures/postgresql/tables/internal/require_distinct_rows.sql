-- require_distinct_rows: refuse a table whose rows cannot be distinguished.
-- Arguments: p_keys (NULL: all columns except the status), p_equal_rows (true: accept equal rows)
CREATE OR REPLACE FUNCTION mq_internal.require_distinct_rows(
    p_table oid, p_label text, p_keys text[], p_status text, p_equal_rows boolean
) RETURNS void
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
DECLARE
    v_bad text;
BEGIN
    IF p_keys IS NULL THEN
        IF NOT p_equal_rows THEN
            PERFORM mq_internal.raise_error('unsuitable_table', format('equal rows of %s cannot be distinguished: give key_columns, or '
                'equal_rows 1 to accept this', p_label));
        END IF;
        v_bad := mq_internal.column_without_equality(p_table, p_status);
        IF v_bad IS NOT NULL THEN
            PERFORM mq_internal.raise_error('unsuitable_table', format('key_columns: needed, because %s of %s cannot be compared',
                v_bad, p_label));
        END IF;
    ELSIF NOT EXISTS (
        SELECT FROM pg_index AS i
        WHERE i.indrelid = p_table AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
            AND NOT EXISTS (
                SELECT FROM generate_series(0, i.indnkeyatts - 1) AS g (n)
                LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[g.n]
                WHERE a.attname IS NULL OR NOT a.attnotnull OR a.attname <> ALL (p_keys)
            )
    ) THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('key_columns: must include all columns of the primary key of %s, '
            'or of a unique index of NOT NULL columns', p_label));
    END IF;
END
$$;

-- primary_key: the columns of a table's primary key.
CREATE OR REPLACE FUNCTION mq_internal.primary_key(p_relation oid) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT array_agg(a.attname ORDER BY k.n) FROM pg_index AS i
        CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attnum, n)
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indrelid = p_relation AND i.indisprimary AND k.n <= i.indnkeyatts
    );
END
$$;

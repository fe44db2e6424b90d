-- require_order: refuse an order column that claims cannot continue from.
CREATE OR REPLACE FUNCTION mq_internal.require_order(p_table oid, p_column text) RETURNS void
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_attribute AS a
        JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE a.attrelid = p_table AND a.attname = p_column AND NOT (a.attnotnull AND t.typcategory IN ('N', 'S', 'D'))
    ) THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('order_column: %s must be NOT NULL, and a number, a text or a time',
            p_column));
    END IF;
END
$$;

-- polled_by_pass: return a polling table, for a caller with the rights that its claims need.
-- Arguments: p_lock (true: lock its row; claims of one table wait for each other)
CREATE OR REPLACE FUNCTION mq_internal.polled_by_pass(p_name text, p_pass text, p_lock boolean) RETURNS mq.polled
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_polled mq.polled;
BEGIN
    -- The check of require_pass in one statement, because each step of a claim calls it.
    SELECT p.* INTO v_polled
    FROM mq.polled AS p
    JOIN pg_namespace AS n ON n.nspname = p.table_schema
    JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = p.table_name AND c.relkind IN ('r', 'p')
    JOIN mq_internal.secret AS s ON s.n = 1
    WHERE p.name = p_name AND p_pass = encode(sha256(convert_to(concat_ws('/', s.word, c.oid, mq_internal.polled_need(p),
        coalesce(p.status_column, ''), pg_backend_pid(), extract(epoch FROM now())), 'UTF8')), 'hex');
    IF NOT FOUND THEN
        PERFORM FROM mq.polled WHERE name = p_name;
        PERFORM mq_internal.raise_error(CASE WHEN FOUND THEN 'unsuitable_table' ELSE 'not_found' END, CASE WHEN FOUND
            THEN 'the caller has not shown the rights that claims of the table need'
            ELSE format('name: no table is adopted as %s', p_name) END);
    END IF;
    IF p_lock THEN
        -- Read it again: others may have changed it before this lock was granted.
        SELECT * INTO v_polled FROM mq.polled WHERE name = p_name FOR UPDATE;
    END IF;
    RETURN v_polled;
END
$$;

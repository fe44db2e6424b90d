-- require_pass: refuse a caller without a proof of a right on a table.
-- Arguments: p_need and p_written: see my_pass
CREATE OR REPLACE FUNCTION mq_internal.require_pass(p_pass text, p_table oid, p_need text, p_written text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM mq_internal.secret AS s
    WHERE s.n = 1 AND p_pass = encode(sha256(convert_to(concat_ws('/', s.word, p_table, p_need, p_written, pg_backend_pid(),
        extract(epoch FROM now())), 'UTF8')), 'hex') AND p_table IS NOT NULL;
    IF NOT FOUND THEN
        PERFORM mq_internal.raise_error('unsuitable_table', format('the caller has not proved its right to %s the table', p_need));
    END IF;
END
$$;

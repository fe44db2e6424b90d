-- find_messages: find messages in any state by id, dedup_key or group_key.
-- Arguments:   p_type (1 to 200 characters; NULL: any, allowed only with p_id); one of p_id, p_dedup_key and p_group_key,
--              which are used in this order; p_size (1 to 10,000; NULL: 20), p_body_length (characters of each body, 0 to
--              16,777,216; NULL: all)
-- Returns:     up to p_size messages with the columns of peek, ordered by id. Archived messages are found only by p_id.
--              p_group_key finds all due messages of a queue with groups, and other messages among the first 10,000 of
--              their state
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT id, state, error FROM mq.find_messages('invoice', p_group_key => 'customer-17');
CREATE OR REPLACE FUNCTION mq.find_messages(
    p_type text DEFAULT NULL,
    p_id bigint DEFAULT NULL,
    p_dedup_key text DEFAULT NULL,
    p_group_key text DEFAULT NULL,
    p_size bigint DEFAULT NULL,
    p_body_length bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint, type text, state text, body text, headers text, priority integer, group_key text, dedup_key text,
    attempts integer, created_at timestamptz, source text, run_at timestamptz, reader text, batch_key uuid,
    lease_until timestamptz, changed_at timestamptz, error text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_ids bigint[];
BEGIN
    PERFORM mq_internal.require_name('type', p_type, true);
    PERFORM mq_internal.require_name('dedup_key', p_dedup_key, true);
    PERFORM mq_internal.require_name('group_key', p_group_key, true);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_range('body_length', p_body_length, 0, 16777216);
    IF p_id IS NOT NULL THEN
        v_ids := ARRAY[p_id];
    ELSIF p_type IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'type: must not be NULL unless id is given');
    ELSIF p_dedup_key IS NOT NULL THEN
        v_ids := ARRAY(SELECT m.id FROM mq.message AS m WHERE m.type = p_type AND m.dedup_key = p_dedup_key);
    ELSIF p_group_key IS NOT NULL THEN
        v_ids := mq_internal.ids_of_group(p_type, p_group_key, coalesce(p_size, 20));
    ELSE
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL unless dedup_key or group_key is given');
    END IF;
    RETURN QUERY
        SELECT s.id, s.type, s.state, left(s.body, coalesce(p_body_length, 16777216)::integer), s.headers, s.priority::integer,
            s.group_key, s.dedup_key, s.attempts::integer, s.created_at, s.source, CASE WHEN s.state = 'N' THEN s.run_at END,
            s.reader, s.batch_key, s.lease_until, s.changed_at, s.error
        FROM mq.message_state AS s
        WHERE s.id = ANY (v_ids) AND (p_type IS NULL OR s.type = p_type)
            AND (p_dedup_key IS NULL OR s.dedup_key = p_dedup_key) AND (p_group_key IS NULL OR s.group_key = p_group_key)
        ORDER BY s.id
        LIMIT coalesce(p_size, 20);
END
$$;

-- find_messages: find messages in any state by id, dedup_key or group_key.
-- Arguments:   p_type (1 to 200 characters; NULL: any, allowed only with an id); p_filter, a flat JSON object with id,
--              dedup_key or group_key; p_size (1 to 10,000; NULL: 20), p_body_length (characters of each body, 0 to
--              16,777,216; NULL: all)
-- Returns:     up to p_size messages with the columns of peek that have all values of the filter, ordered by id. Archived
--              messages are found only by id. A group_key finds all due messages of a queue with groups, and other
--              messages among the first 10,000 of their state
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT id, state, error FROM mq.find_messages('invoice', '{"group_key": "customer-17"}');
CREATE OR REPLACE FUNCTION mq.find_messages(
    p_type text DEFAULT NULL,
    p_filter text DEFAULT NULL,
    p_size bigint DEFAULT NULL,
    p_body_length bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint, type text, state text, body text, headers text, priority integer, group_key text, dedup_key text,
    attempts integer, created_at timestamptz, source text, run_at timestamptz, consumer text, batch_key uuid,
    lease_until timestamptz, changed_at timestamptz, error text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_filter jsonb := mq_internal.read_options(p_filter, 'filter',
        '{"id": [-9223372036854775808, 9223372036854775807], "dedup_key": "text", "group_key": "text"}');
    v_id bigint := v_filter ->> 'id';
    v_dedup_key text := v_filter ->> 'dedup_key';
    v_group_key text := v_filter ->> 'group_key';
    v_ids bigint[];
BEGIN
    PERFORM mq_internal.require_name('type', p_type, true);
    PERFORM mq_internal.require_name('dedup_key', v_dedup_key, true);
    PERFORM mq_internal.require_name('group_key', v_group_key, true);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_range('body_length', p_body_length, 0, 16777216);
    IF v_id IS NOT NULL THEN
        v_ids := ARRAY[v_id];
    ELSIF p_type IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'type: must not be NULL unless the filter has an id');
    ELSIF v_dedup_key IS NOT NULL THEN
        v_ids := ARRAY(SELECT m.id FROM mq.message AS m WHERE m.type = p_type AND m.dedup_key = v_dedup_key);
    ELSIF v_group_key IS NOT NULL THEN
        v_ids := mq_internal.ids_of_group(p_type, v_group_key, coalesce(p_size, 20));
    ELSE
        PERFORM mq_internal.raise_error('invalid_argument', 'filter: must have an id, a dedup_key or a group_key');
    END IF;
    RETURN QUERY
        SELECT s.id, s.type, s.state, left(s.body, coalesce(p_body_length, 16777216)::integer), s.headers, s.priority::integer,
            s.group_key, s.dedup_key, s.attempts::integer, s.created_at, s.source, CASE WHEN s.state = 'N' THEN s.run_at END,
            s.consumer, s.batch_key, s.lease_until, s.changed_at, s.error
        FROM mq.message_state AS s
        WHERE s.id = ANY (v_ids) AND (p_type IS NULL OR s.type = p_type)
            AND (v_dedup_key IS NULL OR s.dedup_key = v_dedup_key) AND (v_group_key IS NULL OR s.group_key = v_group_key)
        ORDER BY s.id
        LIMIT coalesce(p_size, 20);
END
$$;

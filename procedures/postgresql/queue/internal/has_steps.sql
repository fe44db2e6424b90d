-- has_steps: whether one of these messages may have steps; false for most, at the cost of one look into an index.
-- Arguments:   p_ids, p_run (they are a run, as is_run says)
CREATE OR REPLACE FUNCTION mq_internal.has_steps(p_ids bigint[], p_run boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    -- The range of the ids, not a look for each: a batch of 1,000 would cost a twentieth more.
    IF p_run OR cardinality(p_ids) = 1 THEN
        RETURN EXISTS (SELECT FROM mq.step WHERE id BETWEEN p_ids[1] AND p_ids[cardinality(p_ids)]);
    END IF;
    RETURN EXISTS (
        SELECT FROM (SELECT min(u) AS first, max(u) AS last FROM unnest(p_ids) AS u) AS r
        JOIN mq.step AS s ON s.id BETWEEN r.first AND r.last
    );
END
$$;

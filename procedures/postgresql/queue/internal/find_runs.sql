-- find_runs: divide the ids of a batch into runs that one scan of an index range returns in the order of the batch.
-- Arguments:   p_ids (in claim order)
-- Returns:     firsts and lasts: the first and the last id of each run, parallel arrays. Ids without gaps are one run; all
--              other lists have one run per id
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT * FROM mq.find_runs(ARRAY[17, 18, 19]);

CREATE OR REPLACE FUNCTION mq.find_runs(
    p_ids bigint[],
    OUT firsts bigint[],
    OUT lasts bigint[]
)
LANGUAGE plpgsql
IMMUTABLE
AS $$
DECLARE
    v_count integer := cardinality(p_ids);
BEGIN
    firsts := p_ids;
    lasts := p_ids;
    -- Most lists that are no run differ in their ends, which cost nothing to compare.
    IF v_count > 1 AND p_ids[v_count] - p_ids[1] = v_count - 1 THEN
        IF p_ids = ARRAY(SELECT generate_series(p_ids[1], p_ids[v_count])) THEN
            firsts := p_ids[1:1];
            lasts := p_ids[v_count:v_count];
        END IF;
    END IF;
END
$$;

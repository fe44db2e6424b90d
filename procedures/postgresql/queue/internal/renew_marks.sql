-- renew_marks: write the low-water marks of a claim, and delete the older ones.
-- Arguments: p_n (the number of the marks that the claim read; NULL: there were none), p_scanned_at (the last full
--     scan), p_promoted_to (no message due before this time is delayed), p_rows (rows of mq.ready that the claim found,
--     with the first of each priority; NULL: none), p_at_least and p_at_most (bounds for the run_at of the marks of all
--     other priorities), p_only (the position of the only mark, in the place of all that: of a ring or a grouped queue)
-- Transaction: never waits for another claim
--
-- The first row found of a priority becomes its mark. A priority without found rows keeps its mark. Marks are inserted,
-- never updated: the newest are the first index entries, before all dead ones.
CREATE OR REPLACE FUNCTION mq_internal.renew_marks(
    p_type text, p_n bigint, p_scanned_at timestamptz, p_promoted_to timestamptz, p_rows tid[], p_at_least timestamptz,
    p_at_most timestamptz, p_only mq.mark DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    -- Each mark costs one more statement in a claim that finds too few messages. Priorities after the eighth get no mark.
    c_marks CONSTANT integer := 8;
    -- Delete marks up to this many numbers back: concurrent claims may have left some.
    -- One renewal in a hundred deletes all: the lowered mark of a long transaction may be further back.
    c_old CONSTANT bigint := 20;
    v_n bigint := coalesce(p_n, 0) + 1;
BEGIN
    INSERT INTO mq.mark (n, scanned_at, promoted_to, run_at, id, next_priority, priority, type)
    SELECT v_n, p_scanned_at, p_promoted_to, f.run_at, f.id, lead(f.priority::integer, 1, 32768) OVER (ORDER BY f.priority),
        f.priority, p_type
    FROM (
        SELECT DISTINCT ON (m.priority) m.priority, m.run_at, m.id
        FROM (
            SELECT r.priority, r.run_at, r.id, true AS found FROM mq.ready AS r
            WHERE r.ctid = ANY (p_rows)
            UNION ALL
            SELECT k.priority, least(greatest(k.run_at, p_at_least), p_at_most),
                CASE WHEN k.run_at >= p_at_least AND k.run_at < p_at_most THEN k.id ELSE 0 END, false
            FROM mq.mark AS k
            WHERE k.type = p_type AND k.n = p_n AND k.run_at > '-infinity' AND p_only.type IS NULL
        ) AS m
        ORDER BY m.priority, m.found DESC, m.run_at, m.id
        LIMIT c_marks
    ) AS f;
    IF NOT FOUND THEN
        -- A mark at the very start skips nothing; it only records the time of the last full scan.
        INSERT INTO mq.mark (n, scanned_at, promoted_to, run_at, id, next_priority, priority, type)
        VALUES (v_n, p_scanned_at, p_promoted_to, coalesce(p_only.run_at, '-infinity'), coalesce(p_only.id, 0), 32768,
            coalesce(p_only.priority, -32768), p_type);
    END IF;
    -- Skip marks that another claim is deleting. Leftover marks are few and never read; a later claim deletes them.
    DELETE FROM mq.mark
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mq.mark
        WHERE type = p_type AND n BETWEEN CASE p_n % 100 WHEN 0 THEN 0 ELSE p_n - c_old END AND p_n
        FOR UPDATE SKIP LOCKED
    ));
END
$$;

-- renew_ring_mark: write the low-water mark of a round-robin claim, and delete the older ones.
-- Arguments:   p_type, p_n (the number of the mark that the claim read; NULL: there was none), p_after_id (no message up to
--              this id is ready; NULL: no message is ready at all), p_low_until (how long the mark holds), p_promoted_to
--              (no message due before this time is delayed)
-- Transaction: joins the caller's; never waits for another claim

CREATE OR REPLACE FUNCTION mq_internal.renew_ring_mark(
    p_type text,
    p_n bigint,
    p_after_id bigint,
    p_low_until timestamptz,
    p_promoted_to timestamptz
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    -- Delete marks up to this many numbers back: concurrent claims may have left some.
    -- One renewal in a hundred deletes all: the lowered mark of a long transaction may be further back.
    c_old CONSTANT bigint := 20;
BEGIN
    INSERT INTO mq.ring (n, after_id, low_until, promoted_to, type, reader)
    VALUES (coalesce(p_n, 0) + 1, coalesce(p_after_id, (SELECT last_value FROM mq.message_id_seq)), p_low_until, p_promoted_to,
        p_type, '');
    DELETE FROM mq.ring
    WHERE ctid = ANY (ARRAY(
        SELECT ctid
        FROM mq.ring
        WHERE type = p_type AND reader = '' AND n BETWEEN CASE p_n % 100 WHEN 0 THEN 0 ELSE p_n - c_old END AND p_n
        FOR UPDATE SKIP LOCKED
    ));
END
$$;

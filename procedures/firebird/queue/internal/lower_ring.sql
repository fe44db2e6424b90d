-- lower_ring: lower the low-water mark of a ring when a message becomes ready below it.
-- Arguments:   p_type, p_id (the lowest id that became ready)

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_lower_ring (
    p_type mq_name,
    p_id bigint
)
AS
DECLARE v_n bigint;
DECLARE v_after_id bigint;
DECLARE v_low_until timestamp;
DECLARE v_promoted_to timestamp;
BEGIN
    SELECT n, after_id, low_until, promoted_to FROM mq_ring WHERE type = :p_type AND reader = ''
    ORDER BY type DESC, reader DESC, n DESC, after_id DESC ROWS 1
    INTO v_n, v_after_id, v_low_until, v_promoted_to;
    IF (v_low_until > mq_utc_now() AND p_id <= v_after_id) THEN
        -- n + 2: a concurrent claim may write n + 1, and that mark must not count.
        INSERT INTO mq_ring (type, reader, n, after_id, low_until, promoted_to)
        VALUES (:p_type, '', :v_n + 2, :p_id - 1, :v_low_until, :v_promoted_to);
END^

SET TERM ; ^

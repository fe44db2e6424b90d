-- scan_ring: find the lowest ready message of a ring, and measure how long that took.
-- Arguments:   p_type, p_from and p_after (ids above p_from, up to p_after), p_ahead (1: nothing was found after p_after
--              either: measure that scan too), p_long (milliseconds; a longer scan is repeated)
-- Returns:     lowest_id (NULL when there is none; another transaction may have locked it), scanned (the duration of the
--              scan, in milliseconds)

SET TERM ^ ;

CREATE OR ALTER PROCEDURE imq_scan_ring (
    p_type mq_name,
    p_from bigint,
    p_after bigint,
    p_ahead smallint,
    p_long integer
)
RETURNS (
    lowest_id bigint,
    scanned bigint
)
AS
DECLARE v_begun timestamp;
DECLARE v_tries integer = 1;
BEGIN
    -- Measure twice, as in fill_ring: planning and cold pages are slow only the first time.
    WHILE (v_tries <= 2) DO
    BEGIN
        v_begun = mq_utc_now();
        IF (p_ahead = 1) THEN
            SELECT r.id FROM mq_ready AS r WHERE r.type = :p_type AND r.id > MAXVALUE(:p_after, :p_from)
            PLAN (r ORDER mq_ready_ring) ORDER BY r.type, r.id ROWS 1
            INTO lowest_id;
        lowest_id = NULL;
        SELECT r.id FROM mq_ready AS r WHERE r.type = :p_type AND r.id > :p_from AND r.id <= :p_after
        PLAN (r ORDER mq_ready_ring) ORDER BY r.type, r.id ROWS 1
        INTO lowest_id;
        scanned = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
        v_tries = IIF(scanned < p_long, 3, v_tries + 1);
    END
END^

SET TERM ; ^
